// The first pages as a stranger meets them: README is short and links lead somewhere, every spec that a page
// shows passes `muster spec check` as it stands, CHANGELOG has one list per release. As in tidy_test.cc every
// rule is one function from a text to complaints, so that each is tried on a bad example as well.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "base/lower.h"
#include "base/split.h"
#include "tests/catch.h"
#include "tests/fakes/muster_command.h"
#include "tests/fakes/temp_dir.h"
#include "tests/source_dir.h"
#include "tests/tidy_source.h"
#include "tests/unit/plan/shipped.h"

namespace {

using namespace muster::tidy;
using muster::text_of;
using muster::testing::muster_command;

namespace fs = std::filesystem;

constexpr size_t kMostReadmeWords = 800;
constexpr size_t kLongestCell = 200;
constexpr size_t kMostReleaseLines = 80;
const char* const kStatus = "**Status: ";

Source page(const std::string& path) { return {path, text_of(fs::path(muster::source_dir()) / path)}; }

std::string joined(const Complaints& complaints) {
  std::string all;
  for (const auto& complaint : complaints) all += "\n" + complaint;
  return all;
}

// ---- rules about one page

// Everything between blanks counts, that of examples too.
Complaints too_many_words(const Source& source) {
  std::istringstream in(source.text);
  const auto words = static_cast<size_t>(
      std::distance(std::istream_iterator<std::string>(in), std::istream_iterator<std::string>()));
  if (words <= kMostReadmeWords) return {};
  return {source.path + ": " + std::to_string(words) + " words"};
}

Complaints no_status(const Source& source) {
  const auto lines = lines_of(source.text);
  if (lines.size() > 2 && lines[2].starts_with(kStatus)) return {};
  return {source.path + ": the third line does not begin with " + kStatus};
}

Complaints long_cells(const Source& source) {
  Complaints bad;
  size_t number = 0;
  for (const auto& line : lines_of(source.text)) {
    ++number;
    if (!line.starts_with("|")) continue;
    size_t characters = 0;
    for (size_t at = 1; at < line.size(); ++at) {
      const bool border = line[at] == '|' && line[at - 1] != '\\';
      // Continuation bytes of UTF-8 are no characters of their own.
      characters = border ? 0 : characters + ((static_cast<unsigned char>(line[at]) & 0xc0) != 0x80);
      if (characters != kLongestCell + 1) continue;
      bad.push_back(source.path + ":" + std::to_string(number) + ": a cell of more than " +
                    std::to_string(kLongestCell) + " characters");
    }
  }
  return bad;
}

// As the sites that show Markdown make it from a heading.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : muster::lower(heading)) {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_')
      anchor += c;
    else if (c == ' ')
      anchor += '-';
  }
  return anchor;
}

bool has_heading(const std::string& text, const std::string& anchor) {
  const auto lines = lines_of(text);
  return std::any_of(lines.begin(), lines.end(), [&anchor](const std::string& line) {
    const size_t title = line.find_first_not_of('#');
    return title != 0 && title != std::string::npos && line[title] == ' ' &&
           anchor_of(line.substr(title + 1)) == anchor;
  });
}

// Links to files of the tree; those of the web have a colon.
Complaints dead_links(const Source& source) {
  static const std::regex link(R"(\]\(([^)#:]*)(?:#([^)]*))?\))");
  Complaints bad;
  const fs::path here = fs::path(muster::source_dir()) / source.path;
  for (auto it = std::sregex_iterator(source.text.begin(), source.text.end(), link);
       it != std::sregex_iterator(); ++it) {
    const std::string file = (*it)[1], anchor = (*it)[2];
    const fs::path target = here.parent_path() / file;
    if (!file.empty() && !fs::exists(target))
      bad.push_back(source.path + ": no such file: " + file);
    else if (!anchor.empty() && !has_heading(file.empty() ? source.text : text_of(target), anchor))
      bad.push_back(source.path + ": no such heading: " + file + "#" + anchor);
  }
  return bad;
}

// No address leads anywhere yet: what is reported is reported in the repository.
Complaints addresses(const Source& source) {
  static const std::regex address(R"([A-Za-z0-9._+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*)");
  Complaints bad;
  for (auto it = std::sregex_iterator(source.text.begin(), source.text.end(), address);
       it != std::sregex_iterator(); ++it)
    bad.push_back(source.path + ": an address: " + it->str());
  return bad;
}

// "Unreleased", then the releases, the newest first, each short.
Complaints changes(const Source& source) {
  Complaints bad;
  std::vector<std::string> titles;
  size_t lines = 0;
  const auto close = [&] {
    if (titles.size() > 1 && lines > kMostReleaseLines)
      bad.push_back(source.path + ": " + titles.back() + " has " + std::to_string(lines) + " lines");
    lines = 0;
  };
  for (const auto& line : lines_of(source.text)) {
    if (line.starts_with("## ")) {
      close();
      titles.push_back(line.substr(3));
    }
    ++lines;
  }
  close();
  if (titles.empty() || titles[0] != "Unreleased")
    bad.push_back(source.path + ": does not begin with Unreleased");
  if (titles.empty() || titles.back() != "0.1.0") bad.push_back(source.path + ": does not end with 0.1.0");
  return bad;
}

// ---- specs that pages show

// Wherever the cluster's name stands in it; a block with nodes and images is meant as one, too.
bool is_spec(const std::string& block) {
  const auto lines = lines_of(block);
  const auto has = [&lines](const std::string& key) {
    return std::any_of(lines.begin(), lines.end(),
                       [&key](const std::string& line) { return line.starts_with(key); });
  };
  return has("cluster:") || (has("nodes:") && has("images:"));
}

// Blocks of a page, fenced or indented, that are whole specs. A fence may be indented, in a list.
std::vector<std::string> specs_of(const std::string& text) {
  std::vector<std::string> found;
  std::string block;
  bool fenced = false;
  size_t indent = 0;
  const auto close = [&] {
    if (is_spec(block)) found.push_back(block);
    block.clear();
  };
  for (const auto& line : lines_of(text)) {
    const size_t first = line.find_first_not_of(' ');
    if (first != std::string::npos && line.compare(first, 3, "```") == 0) {
      close();
      fenced = !fenced;
      indent = first;
    } else if (fenced) {
      block += (first != std::string::npos && first >= indent ? line.substr(indent) : line) + "\n";
    } else if (line.starts_with("    ")) {
      block += line.substr(4) + "\n";
    } else if (line.empty() && !block.empty()) {
      block += "\n";
    } else {
      close();
    }
  }
  close();
  return found;
}

// Nothing, or what the command that the page names says of it.
Complaints unchecked(const Source& source) {
  Complaints bad;
  const muster::TempDir dir;
  for (const auto& spec : specs_of(source.text)) {
    dir.write("cluster.yaml", spec);
    const auto ran = muster_command({"spec", "check", dir.path("cluster.yaml")});
    if (ran.exit != 0) bad.push_back(source.path + ": " + ran.err);
  }
  return bad;
}

bool is_page(const std::string& path) { return path.ends_with(".md"); }
bool is_readme(const std::string& path) { return path == "README.md" || path.ends_with("/README.md"); }
bool is_first_page(const std::string& path) {
  return is_page(path) && (path.find('/') == std::string::npos || is_readme(path));
}
bool names_contact(const std::string& path) {
  return (is_page(path) && path.find('/') == std::string::npos) || path == "cmake/package.cmake";
}

}  // namespace

TEST_CASE("pages: every rule can fail", "[tidy]") {
  std::string words;
  for (size_t i = 0; i < kMostReadmeWords; ++i) words += i % 9 ? "word " : "word\n";
  CHECK(too_many_words({"a.md", words}).empty());
  CHECK(too_many_words({"a.md", words + "one"}).size() == 1);
  CHECK(no_status({"a.md", "# a\n\n**Status: fine.**\n"}).empty());
  CHECK(no_status({"a.md", "# a\n\nGood.\n\n**Status: fine.**\n"}).size() == 1);
  CHECK(no_status({"a.md", "# a\n"}).size() == 1);
  const std::string cell(kLongestCell - 2, 'x');
  CHECK(long_cells({"a.md", "| a | " + cell + " |\n|---|---|\n| " + cell + " | b |\n"}).empty());
  CHECK(long_cells({"a.md", "| a |\n| b | " + cell + "y |\n"}) ==
        Complaints{"a.md:2: a cell of more than 200 characters"});
  CHECK(long_cells({"a.md", "| a \\| " + cell + " |\n"}).size() == 1);
  CHECK(long_cells({"a.md", cell + cell + "\n"}).empty());

  CHECK(
      dead_links({"a.md", "[a](README.md), [b](docs/operations.md#installing), [c](#d)\n\n## D\n"}).empty());
  CHECK(dead_links({"docs/a.md", "[a](../README.md) [b](https://example.org/x#y)"}).empty());
  CHECK(dead_links({"a.md", "[a](docs/nothing.md)"}).size() == 1);
  CHECK(dead_links({"a.md", "[a](docs/operations.md#no-such-section) [b](#c)"}).size() == 2);
  CHECK(addresses({"a.md", "Write to us <root@localhost> or a.b@example.org.\n"}).size() == 2);
  CHECK(addresses({"a.md", "an @ alone"}).empty());

  const std::string head = "# Changes\n\n## Unreleased\n", release = "## 0.1.0\n";
  std::string lines;
  for (size_t i = 1; i < kMostReleaseLines; ++i) lines += "- a\n";
  CHECK(changes({"a.md", head + lines + lines + release + lines}).empty());
  CHECK(changes({"a.md", head + release + lines + "- a\n"}).size() == 1);
  CHECK(changes({"a.md", head + "## 0.2.0\n" + lines + "- a\n" + release}).size() == 1);
  CHECK(changes({"a.md", "# Changes\n\n" + release + "\n## Unreleased\n"}).size() == 2);
  CHECK(changes({"a.md", ""}).size() == 2);
}

TEST_CASE("pages: a spec that a page shows is found, and one that does not check is a complaint", "[tidy]") {
  const std::string spec = text_of(muster::source_dir() + "/docs/specs/one-server.yaml");
  REQUIRE(is_spec(spec));
  const std::string fenced = "Text.\n\n```yaml\n" + spec + "```\n";
  std::string indented = "Text:\n\n";
  for (const auto& line : lines_of(spec)) indented += line.empty() ? "\n" : "    " + line + "\n";
  CHECK(specs_of(fenced) == std::vector<std::string>{spec});
  CHECK(specs_of(indented + "\nMore text.\n") == std::vector<std::string>{spec + "\n"});
  CHECK(specs_of(indented + indented).size() == 2);
  std::string in_list = "- A step:\n\n  ```yaml\n";
  for (const auto& line : lines_of(spec)) in_list += line.empty() ? "\n" : "  " + line + "\n";
  CHECK(specs_of(in_list + "  ```\n") == std::vector<std::string>{spec});
  CHECK(specs_of("```yaml\n---\nnetwork:\n  gateway: 10.0.0.1\ncluster: a\n```\n").size() == 1);
  CHECK(specs_of("```yaml\nimages:\n  a:\nnodes:\n  - name: a\n```\n").size() == 1);
  CHECK(specs_of("```yaml\nnodes:\n  - name: a\n```\n\n    muster up cluster.yaml\n").empty());

  CHECK(joined(unchecked({"a.md", fenced})) == "");
  const auto broken = [&](const std::string& what, const std::string& with) {
    std::string text = fenced;
    REQUIRE(text.find(what) != std::string::npos);
    text.replace(text.find(what), what.size(), with);
    return unchecked({"a.md", text}).size();
  };
  CHECK(broken("AAAAC3NzaC1lZDI1NTE5AAAAIJ0W0oWKm6pJ0W0oWKm6pJ0W0oWKm6pJ0W0oWKm6pJ0W", "AAAA...") == 1);
  CHECK(broken("b8:ce:f6:00:00:01", "b8:ce:f6:00:00") == 1);
  CHECK(broken("hpc, apptainer ]", "hpc, aptainer ]") == 1);
  CHECK(broken("profile: standard", "profile: standrd") == 1);
}

TEST_CASE("pages: README is short and says at once what muster ran on", "[tidy]") {
  CHECK(joined(too_many_words(page("README.md"))) == "");
  CHECK(joined(no_status(page("README.md"))) == "");
  CHECK(over_tree(long_cells, is_readme) == "");
}

TEST_CASE("pages: links of the first pages lead somewhere, and no address leads nowhere", "[tidy]") {
  CHECK(over_tree(dead_links, is_first_page) == "");
  CHECK(over_tree(addresses, names_contact) == "");
}

TEST_CASE("pages: every spec that is shown passes `muster spec check` as it stands", "[tidy][docs]") {
  CHECK(over_tree(unchecked, is_page) == "");
  const auto of_readme = specs_of(page("README.md").text);
  REQUIRE(of_readme.size() == 1);
  const auto in = muster::testing::shipped_input(of_readme[0]);
  CHECK(muster::testing::planned_of(in).nodes.size() == in.spec.nodes.size());
  size_t files = 0;
  for (const auto& source : tree()) {
    if (!source.path.starts_with("docs/") || !source.path.ends_with(".yaml")) continue;
    CAPTURE(source.path);
    const auto ran = muster_command({"spec", "check", muster::source_dir() + "/" + source.path});
    // Its key is the examples'. Nothing else is warned of.
    const auto lines = muster::split_lines(ran.err);
    CHECK(!lines.empty());
    for (size_t i = 0; i < lines.size(); i += 2) CHECK(muster::has(lines[i], "[placeholder-key]"));
    CHECK(ran.exit == 0);
    ++files;
  }
  CHECK(files >= 5);
}

TEST_CASE("pages: CHANGELOG has what is not released yet, then the releases", "[tidy]") {
  CHECK(joined(changes(page("CHANGELOG.md"))) == "");
}
