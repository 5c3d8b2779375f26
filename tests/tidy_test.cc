// House rules as a test: how long functions and lines are, what no file may say. What may include what:
// tests/tidy_floors_test.cc.
//
// Reads the real tree. Every rule is one function from a file to complaints, so that each is tried on a bad
// example as well: a rule that cannot fail is no rule.
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/tidy_source.h"

namespace {

using namespace muster::tidy;

// As .clang-format says, which test.sh holds the tree to; it leaves raw literals alone, which are often data.
constexpr size_t kLongestLine = 110;
constexpr size_t kLongestDataLine = 200;
constexpr size_t kLongestFunction = 70;
constexpr size_t kLongestTest = 120;

// ---- rules about one file

// Numbers of the lines that a raw literal takes part in.
std::set<size_t> data_lines(const std::string& text) {
  std::set<size_t> found;
  size_t number = 1;
  for (size_t at = 0; at < text.size();) {
    const bool raw = text[at] == '"' && at > 0 && text[at - 1] == 'R';
    size_t end = at + 1;
    if (text.compare(at, 2, "//") == 0) end = std::min(text.find('\n', at), text.size());
    if (text[at] == '"') end = std::min(skip_literal(text, at), text.size());
    const auto breaks = static_cast<size_t>(
        std::count(text.begin() + static_cast<long>(at), text.begin() + static_cast<long>(end), '\n'));
    for (size_t line = number; raw && line <= number + breaks; ++line) found.insert(line);
    number += breaks;
    at = end;
  }
  return found;
}

Complaints long_lines(const Source& source) {
  Complaints bad;
  const std::set<size_t> data = data_lines(source.text);
  size_t number = 0;
  for (const auto& line : lines_of(source.text)) {
    ++number;
    // Continuation bytes of UTF-8 take no column.
    auto columns = static_cast<size_t>(std::count_if(
        line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
    if (columns > (data.count(number) ? kLongestDataLine : kLongestLine))
      bad.push_back(source.path + ":" + std::to_string(number) + ": " + std::to_string(columns) + " columns");
  }
  return bad;
}

// Does the text before an opening brace start a function's body?
bool opens_function(const std::string& before) {
  static const std::regex type(
      R"(^\s*(template\s*<[^;]*>\s*)?(inline\s+)?(namespace|class|struct|enum|union|extern)\b)");
  static const std::regex control(R"(^\s*(else|if|for|while|switch|do|try|catch)\b)");
  size_t last = before.find_last_not_of(" \t\n");
  if (last == std::string::npos || before[last] == '=' || before[last] == ',' || before[last] == '(')
    return false;
  return before.find(')') != std::string::npos && !std::regex_search(before, type) &&
         !std::regex_search(before, control);
}

Complaints long_functions(const Source& source) {
  struct Open {
    size_t line;
    bool function;
  };
  Complaints bad;
  const size_t longest = source.path.starts_with("tests/") ? kLongestTest : kLongestFunction;
  std::vector<Open> open;
  std::string before;
  size_t line = 1;
  for (char c : without_records(code_of(source.text))) {
    if (c == '{') open.push_back({line, opens_function(before)});
    if (c == '}' && !open.empty()) {
      if (open.back().function && line - open.back().line > longest)
        bad.push_back(source.path + ":" + std::to_string(open.back().line) + ": a function of " +
                      std::to_string(line - open.back().line + 1) + " lines");
      open.pop_back();
    }
    if (c == '{' || c == '}' || c == ';')
      before.clear();
    else
      before += c;
    if (c == '\n') ++line;
  }
  return bad;
}

Complaints without_contract(const Source& source) {
  if (!source.text.starts_with("// ")) return {source.path + ": a header opens with its contract"};
  if (source.text.find("#pragma once") == std::string::npos) return {source.path + ": no #pragma once"};
  return {};
}

Complaints forbidden_code(const Source& source) {
  struct Word {
    std::regex pattern;
    const char* why;
  };
  static const std::array<Word, 5> kWords = {{
      {std::regex(R"(\bco_(await|yield|return)\b)"), "g++ 12 miscompiles coroutines"},
      {std::regex(R"(\bstd::format\b|<format>)"), "use fmt"},
      {std::regex(R"rule(\bstd::system\(|(^|\s)(::)?system\(("|\w+\.c_str)|\bpopen\()rule"),
       "no shell: use Process"},
      {std::regex(R"(\b(getaddrinfo|gethostbyname)\()"), "names are not resolved in a static program"},
      {std::regex(R"(\b(std::)?s?rand\(|\brandom_device\b)"), "random bytes come from base/digest.h"},
  }};
  Complaints bad;
  size_t number = 0;
  for (const auto& line : lines_of(code_of(source.text))) {
    ++number;
    for (const auto& word : kWords)
      if (std::regex_search(line, word.pattern))
        bad.push_back(source.path + ":" + std::to_string(number) + ": " + word.why);
  }
  return bad;
}

// One way to text and one from it. Json::parse() throws, which on what others send ends the program.
Complaints strict_json(const Source& source) {
  static const std::set<std::string> kHere = {"base/json.cc", "base/json_dump.cc"};
  Complaints bad;
  if (!(is_product(source.path) || source.path.starts_with("bench/")) || kHere.count(source.path)) return bad;
  static const std::regex dump(R"((\.|->)dump\()"), parse(R"(\b[Jj]son::parse\((?!embedded::))");
  size_t number = 0;
  for (const auto& line : lines_of(code_of(source.text))) {
    ++number;
    const std::string where = source.path + ":" + std::to_string(number);
    if (std::regex_search(line, dump)) bad.push_back(where + ": use dump_json() of base/json_dump.h");
    if (std::regex_search(line, parse)) bad.push_back(where + ": use parse_json() of base/json.h");
  }
  return bad;
}

// nlohmann's header is half of what a source costs to compile; base/json.h stands in its place.
Complaints foreign_json(const Source& source) {
  static const std::set<std::string> kMay = {"base/json.cc", "tests/unit/base/json_test.cc"};
  static const std::regex include(R"(^\s*#\s*include\s*[<"]nlohmann\b)");
  Complaints bad;
  if (kMay.count(source.path)) return bad;
  size_t number = 0;
  for (const auto& line : lines_of(source.text)) {
    ++number;
    if (std::regex_search(line, include))
      bad.push_back(source.path + ":" + std::to_string(number) + ": use Json of base/json.h");
  }
  return bad;
}

// What differs between distributions has one home. Comments may say on which one something was seen.
Complaints named_distribution(const Source& source) {
  static const std::regex name(
      R"(\b(debian|buster|bullseye|bookworm|trixie|forky|ubuntu|focal|jammy|noble)\b)", std::regex::icase);
  // How nodes' iSCSI names begin, by which targets admit them, whatever they run; and a playbook.
  static const std::regex other(R"(\biqn\.1993-08\.org\.debian:|\bgpu-ubuntu\b)");
  Complaints bad;
  if (!is_product(source.path) || source.path == "base/distribution.cc") return bad;
  size_t number = 0;
  for (const auto& line : lines_of(without_comments(source.text))) {
    ++number;
    if (std::regex_search(std::regex_replace(line, other, ""), name))
      bad.push_back(source.path + ":" + std::to_string(number) + ": use base/distribution.h");
  }
  return bad;
}

// Steps write below folders of others: by path, root would follow their links. Files opens the way.
Complaints changed_by_path(const Source& source) {
  static const std::regex call(
      R"re(\b(fs|filesystem)::(rename|remove|remove_all|permissions|create_\w+|copy\w*|resize_file)\()re"
      R"re(|(^|[^\w>])::(chown|lchown|chmod|rename|unlink|mkdir|symlink|link|truncate)\()re"
      R"re(|(^|[^\w:.>])(lchown|chmod|utimensat)\()re");
  Complaints bad;
  if (!source.path.starts_with("agent/steps/") && !source.path.starts_with("agent/storage/")) return bad;
  size_t number = 0;
  for (const auto& line : lines_of(code_of(source.text)))
    if (++number; std::regex_search(line, call))
      bad.push_back(source.path + ":" + std::to_string(number) + ": changes a path: use Files of sys/os.h");
  return bad;
}

// Paths of the machine it was written on.
Complaints forbidden_text(const Source& source) {
  static const std::string text =
      std::string("/wo") + "rk/";  // in two parts, or this file would complain of itself
  Complaints bad;
  size_t number = 0;
  for (const auto& line : lines_of(source.text)) {
    ++number;
    size_t at = line.find(text);
    // A machine's path starts a word; "scratch/.../" is a relative one.
    bool starts_word =
        at == 0 || (at != std::string::npos && !std::isalnum(static_cast<unsigned char>(line[at - 1])));
    if (starts_word) bad.push_back(source.path + ":" + std::to_string(number) + ": " + text);
  }
  return bad;
}

// ---- rules about the whole tree

// Every source is named by, or matches a glob of, the build; every header is included somewhere.
Complaints orphans(const std::vector<Source>& sources) {
  std::set<std::string> patterns, included;
  static const std::regex word(R"([\w./*-]+\.(cc|cu)\b)"), folder(R"(\nmuster_folder\(([\w/]+))");
  for (const auto& source : sources) {
    if (source.path.ends_with(".cmake"))
      for (std::sregex_iterator it(source.text.begin(), source.text.end(), folder), end; it != end; ++it)
        patterns.insert((*it)[1].str() + "/*.cc");
    if (source.path.ends_with("CMakeLists.txt") || source.path.ends_with(".cmake"))
      for (std::sregex_iterator it(source.text.begin(), source.text.end(), word), end; it != end; ++it)
        // "${CMAKE_SOURCE_DIR}/tests/x.cc" is tests/x.cc
        patterns.insert(it->str().substr(it->str()[0] == '/'));
    if (is_cpp(source.path))
      for (const auto& path : includes_of(source, '"')) included.insert(path);
  }
  Complaints bad;
  for (const auto& source : sources) {
    bool built = std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
      return ::fnmatch(pattern.c_str(), source.path.c_str(), FNM_PATHNAME) == 0;
    });
    if (is_unit(source.path) && !built) bad.push_back(source.path + ": nothing builds it");
    if (is_header(source.path) && !included.count(source.path))
      bad.push_back(source.path + ": nothing includes it");
  }
  return bad;
}

std::string repeat(const std::string& text, size_t times) {
  std::string all;
  while (times-- > 0) all += text;
  return all;
}

}  // namespace

TEST_CASE("tidy: the tree is there", "[tidy]") {
  REQUIRE(tree().size() > 50);
  REQUIRE(
      std::any_of(tree().begin(), tree().end(), [](const Source& s) { return s.path == "base/result.h"; }));
}

TEST_CASE("tidy: every rule can fail", "[tidy]") {
  CHECK(long_lines({"a.cc", std::string(kLongestLine + 1, 'x') + "\n"}).size() == 1);
  CHECK(long_lines({"a.cc", repeat("ü", kLongestLine)}).empty());
  const std::string data = "// no \"literal\nf(R\"(\n" + std::string(kLongestLine + 1, 'x') + "\n)\");\n";
  CHECK(long_lines({"a.cc", data}).empty());
  CHECK(long_lines({"a.cc", data + std::string(kLongestLine + 1, 'x')}).size() == 1);
  CHECK(long_lines({"a.cc", "R\"(" + std::string(kLongestDataLine, 'x') + ")\""}).size() == 1);
  const std::string body = repeat("  x();\n", 70);
  CHECK(long_functions({"a.cc", "int f(int a,\n      int b) {\n" + body + "}\n"}).size() == 1);
  CHECK(long_functions({"a.cc", "int f() {\n" + repeat("  x();\n", 69) + "}\n"}).empty());
  CHECK(long_functions({"a.cc", "namespace n {\nstruct S {\n" + repeat("  int x();\n", 90) + "};\n}\n"})
            .empty());
  CHECK(long_functions({"a.cc", "const T t = {\n" + repeat("  {\"(\", 1},\n", 90) + "};\n"}).empty());
  CHECK(long_functions(
            {"a.cc", "int f() { return '{'; }  // {\nauto s = R\"(\n" + repeat("{(\n", 90) + ")\";\n"})
            .empty());
  CHECK(without_contract({"a.h", "#pragma once\n"}).size() == 1);
  CHECK(forbidden_code({"a.cc", "  co_await x;\n"}).size() == 1);
  CHECK(forbidden_code({"a.cc", "  system(\"ls\");\n"}).size() == 1);
  CHECK(forbidden_code({"a.cc", "  // system(\"ls\") is never called\n  write_system(x);\n"}).empty());
  CHECK(strict_json({"lab/a.cc", "x.dump(2);\nx->dump();\nJson::parse(x);\nnlohmann::json::parse(x);\n"})
            .size() == 4);
  CHECK(strict_json({"lab/a.cc", "dump_json(x);\nJson::parse(embedded::schema);\n// x.dump()\n"}).empty());
  CHECK(foreign_json({"base/a.h", "#include <nlohmann/json.hpp>\n"}).size() == 1);
  CHECK(foreign_json({"base/a.cc", "#  include \"nlohmann/json_fwd.hpp\"\n"}).size() == 1);
  CHECK(foreign_json({"base/json.cc", "#include <nlohmann/json.hpp>\n"}).empty());
  CHECK(named_distribution(
            {"agent/a.cc", "f(\"Debian 12\");\nconst char* s = R\"(x\ntrixie)\";\nbool noble;\n"})
            .size() == 3);
  CHECK(named_distribution({"agent/a.cc", "// Debian's\nf(\"DEBIAN_FRONTEND\");  /* Ubuntu\n*/\n"}).empty());
  CHECK(named_distribution({"agent/a.cc", "f(\"iqn.1993-08.org.debian:01:{}\", \"gpu-ubuntu\");\n"}).empty());
  CHECK(named_distribution({"tests/a.cc", "f(\"debian\");\n"}).empty());
  CHECK(changed_by_path(
            {"agent/steps/a.cc", "  fs::rename(a, b, e);\n  if (::chown(p, 1, 1))\n  chmod(p, 1);\n"})
            .size() == 3);
  CHECK(changed_by_path({"agent/steps/a.cc", "  files.remove(x);\n  steps::link(x);\n  // ::chown(x)\n"})
            .empty());
  CHECK(changed_by_path({"sys/a.cc", "  ::chmod(x, 1);\n"}).empty());
  CHECK(forbidden_text({"a.md", std::string("see /wo") + "rk/x\n"}).size() == 1);

  CHECK(orphans({{"CMakeLists.txt", "GLOBS base/*.cc"},
                 {"base/a.cc", ""},
                 {"base/x/b.cc", ""},
                 {"base/c.h", ""}}) ==
        Complaints{"base/x/b.cc: nothing builds it", "base/c.h: nothing includes it"});
}

TEST_CASE("tidy: lines fit and functions can be read at once", "[tidy]") {
  CHECK(over_tree(long_lines, is_cpp) == "");
  CHECK(over_tree(long_functions, is_cpp) == "");
}

TEST_CASE("tidy: headers are contracts", "[tidy]") { CHECK(over_tree(without_contract, is_header) == ""); }

TEST_CASE("tidy: nothing is said that must not be", "[tidy]") {
  CHECK(over_tree(forbidden_code, is_cpp) == "");
  CHECK(over_tree(strict_json, is_cpp) == "");
  CHECK(over_tree(foreign_json, is_cpp) == "");
  CHECK(over_tree(named_distribution, is_cpp) == "");
  CHECK(over_tree(changed_by_path, is_cpp) == "");
  CHECK(over_tree(forbidden_text, [](const std::string&) { return true; }) == "");
}

TEST_CASE("tidy: no source is left out of the build and no header unused", "[tidy]") {
  CHECK(all_of(orphans(tree())) == "");
}
