// What a valid spec is warned of: each kind, with code, path and place.
#include "controller/spec/warnings/spec_warnings.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "controller/spec/findings.h"
#include "controller/spec/own_variables.h"
#include "controller/spec/reader/parse_spec.h"
#include "tests/catch.h"
#include "tests/source_dir.h"

using namespace muster;

namespace {

std::string without_warnings() { return text_of(source_dir() + "/tests/golden/spec_without_warnings.yaml"); }

std::string with(const std::string& from, const std::string& to) {
  std::string text = without_warnings();
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

SpecWarnings warnings_of(const std::string& text) {
  const SpecNames names = shipped_names();
  const ParsedSpec parsed = parse_spec(text, names);
  CAPTURE(to_string(parsed.errors, "f"));
  REQUIRE(parsed.errors.empty());
  return spec_warnings(text, parsed.spec, names);
}

std::string codes_of(const std::vector<SpecError>& warnings) {
  std::string out;
  for (const SpecError& one : warnings) out += one.code + " " + one.path + "\n";
  return out;
}

struct Doubtful {
  const char *from, *to;
  const char *code, *path;
  int line, column;
  size_t count;  // of warnings in all
};
const Doubtful kDoubtful[] = {
#include "tests/golden/spec_warnings.inc"
};

}  // namespace

TEST_CASE("a spec that means what it says is not warned of", "[spec][warnings]") {
  const SpecWarnings found = warnings_of(without_warnings());
  CHECK(codes_of(found.shown) == "");
  CHECK(found.silenced.empty());
}

TEST_CASE("each kind of warning has its code, path and place", "[spec][warnings]") {
  std::set<std::string> codes;
  for (const Doubtful& one : kDoubtful) {
    INFO("replaced: " << one.from << "\nwith: " << one.to);
    const std::vector<SpecError> found = warnings_of(with(one.from, one.to)).shown;
    INFO(codes_of(found));
    CHECK(found.size() == one.count);
    CHECK(std::any_of(found.begin(), found.end(), [&](const SpecError& warning) {
      return warning.code == one.code && warning.path == one.path && warning.line == one.line &&
             warning.column == one.column;
    }));
    CHECK(std::is_sorted(found.begin(), found.end(),
                         [](const SpecError& a, const SpecError& b) { return a.line < b.line; }));
    codes.insert(one.code);
  }
  // The time zones of the host are compared by the command line.
  codes.emplace(finding::kTimeZoneUnchecked);
  const std::vector<std::string> all = warning_codes();
  CHECK(codes == std::set<std::string>(all.begin(), all.end()));
}

TEST_CASE("a warning that the spec silences by its code is counted, and no other", "[spec][warnings]") {
  const std::string two = with("  plain: {", "  old: { recipe: debian-12 }\n  plain: {") +
                          "warnings: { silence: [ image-unused ] }\n";
  const SpecWarnings one_left = warnings_of(two);
  CHECK(codes_of(one_left.shown) == "");
  CHECK(one_left.silenced == std::map<std::string, size_t>{{"image-unused", 1}});
  const SpecWarnings other = warnings_of(with("  head: {", "  spare: { playbooks: [ base ] }\n  head: {") +
                                         "warnings: { silence: [ image-unused ] }\n");
  CHECK(codes_of(other.shown) == "role-unused roles.spare\n");
  CHECK(other.silenced.empty());
}

TEST_CASE("a code that is silenced must be that of a warning", "[spec][warnings]") {
  const auto error_of = [](const std::string& list) {
    const std::string text = without_warnings() + "warnings: { silence: " + list + " }\n";
    const auto errors = parse_spec(text, shipped_names()).errors;
    return errors.empty() ? SpecError{} : errors.front();
  };
  CHECK(error_of("[ role-unused, image-unused ]").path.empty());
  const SpecError misspelt = error_of("[ role-unused, image-unsed ]");
  CHECK(misspelt.path == "warnings.silence[1]");
  CHECK(misspelt.line == 47);
  CHECK(misspelt.column == 37);
  CHECK(misspelt.message.find("did you mean 'image-unused'?") != std::string::npos);
  CHECK(error_of("[ yaml-tab ]").path == "warnings.silence[0]");
  CHECK(error_of("[ role-unused, role-unused ]").path == "warnings.silence[1]");
  CHECK(error_of("[]").path == "warnings.silence");
  CHECK(error_of("role-unused").path == "warnings.silence");
}

TEST_CASE("playbooks that are not shipped may do and read anything", "[spec][warnings]") {
  // A playbook that only the controller has.
  SpecNames names = shipped_names();
  names.playbooks.push_back("ours");
  const auto codes_with = [&](const std::string& playbooks) {
    std::string text = with("head: { playbooks: [ base, ssh ] }", "head: { playbooks: " + playbooks + " }");
    text.replace(text.find("vars:\n"), 6, "vars:\n  colour: blue\n");
    text.replace(text.find("    disks: { os"), 4, "    hardware: { gpus: 2 }\n    ");
    const ParsedSpec parsed = parse_spec(text, names);
    REQUIRE(parsed.errors.empty());
    return codes_of(spec_warnings(text, parsed.spec, names).shown);
  };
  CHECK(codes_with("[ base, ssh ]") ==
        "gpus-without-driver nodes[1].hardware.gpus\nvariable-unread vars.colour\n");
  CHECK(codes_with("[ base, ssh, ours ]") == "");
}

TEST_CASE("the spec's own playbooks are looked through for what they read", "[spec][warnings]") {
  const std::string own =
      "playbooks:\n  site/motd.yaml: |\n    playbook: motd\n    steps:\n      - name: a\n        module: "
      "file\n        params: { path: /etc/motd, content: \"{{vars.colour}}\" }\n";
  std::string text =
      with("  head: { playbooks: [ base, ssh ] }", "  head: { playbooks: [ base, ssh, motd ] }");
  text.replace(text.find("vars:\n"), 6, "vars:\n  colour: blue\n  color: red\n");
  CHECK(codes_of(warnings_of(text + own).shown) == "variable-unread vars.color\n");
}

TEST_CASE("variables that muster itself reads come from one table, so that none of them is called unread",
          "[spec][warnings][tidy]") {
  const std::regex literal(R"re((?:declared_variable\([^;"]*|\bvariable\(p, d, |words_of\(vars, )re"
                           R"re(|\bvars\.(?:value|find|count|at)\(|\bvars\[)"([a-z_]+)")re");
  std::set<std::string> names;
  for (const char* folder : {"/controller", "/cli"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source_dir() + folder)) {
      if (entry.path().extension() != ".cc") continue;
      const std::string text = text_of(entry.path());
      for (auto it = std::sregex_iterator(text.begin(), text.end(), literal); it != std::sregex_iterator();
           ++it)
        names.insert((*it)[1]);
    }
  // Those of playbooks.
  CHECK(names == std::set<std::string>{"nvidia_cuda_major", "nvidia_driver"});
  for (const OwnVariable& one : kOwnVariables) {
    CAPTURE(one.name);
    if (*one.playbook != '\0') continue;
    const std::string line = std::string("vars:\n  ") + one.name + ": x\n";
    const Spec spec = parse_spec(without_warnings(), shipped_names()).spec;
    const SpecWarnings found = spec_warnings(with("vars:\n", line), spec, shipped_names());
    CHECK(codes_of(found.shown) == "");
  }
}

TEST_CASE("a mirror that the spec or the recipe declares is enough", "[spec][warnings]") {
  const std::string ubuntu = with("plain: { recipe: debian-13-metal", "plain: { recipe: ubuntu-24.04");
  std::string text = ubuntu;
  text.replace(text.find("  dns:"), 0, "  apt: { ubuntu: { mirror: http://10.20.0.5/ubuntu } }\n");
  CHECK(codes_of(warnings_of(text).shown) == "");
  SpecNames names = shipped_names();
  for (KnownRecipe& recipe : names.recipes) recipe.mirror = true;
  const ParsedSpec parsed = parse_spec(ubuntu, names);
  CHECK(codes_of(spec_warnings(ubuntu, parsed.spec, names).shown) == "");
}

TEST_CASE("documents: the page of the spec has every code with its meaning and remedy", "[tidy]") {
  const std::string page = text_of(source_dir() + "/docs/spec.md");
  const size_t begin = page.find("\n## warnings\n");
  REQUIRE(begin != std::string::npos);
  const std::string section = page.substr(begin, page.find("\n## ", begin + 1) - begin);
  const std::regex row(R"(\n\| `([a-z-]+)` \| ([^\n]*) \|(?=\n))");
  std::string shown, known;
  for (auto it = std::sregex_iterator(section.begin(), section.end(), row); it != std::sregex_iterator();
       ++it)
    if ((*it)[1] != "silence") shown += (*it)[1].str() + " | " + (*it)[2].str() + "\n";
  for (const Severity severity : {Severity::warning, Severity::error})
    for (const Finding& one : findings())
      if (one.severity == severity)
        known +=
            std::string(one.code) + " | " + std::string(one.meaning) + " | " + std::string(one.remedy) + "\n";
  CHECK(shown == known);
}
