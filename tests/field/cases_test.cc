// The cases themselves: each says what it is, and is tried by something.
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "controller/spec/yaml.h"
#include "tests/field/case.h"
#include "tests/source_dir.h"

namespace muster::tests {

namespace fs = std::filesystem;

namespace {

std::map<std::string, fs::path> all_cases() {
  std::map<std::string, fs::path> out;
  for (const auto& area : fs::directory_iterator(source_dir() + "/tests/field"))
    if (area.is_directory())
      for (const auto& one : fs::directory_iterator(area.path()))
        if (one.is_directory()) {
          INFO(one.path().string());
          CHECK(out.emplace(one.path().filename(), one.path()).second);  // one name, one case
        }
  return out;
}

// The cases that a test in a source names.
std::set<std::string> tried_by_tests() {
  std::set<std::string> out;
  const std::regex name("FIELD_CASE\\(\\s*\"([a-z0-9-]+)");
  for (const auto& file : fs::directory_iterator(source_dir() + "/tests/field")) {
    if (file.path().extension() != ".cc") continue;
    const std::string text = text_of(file.path());
    for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it) out.insert((*it)[1]);
  }
  return out;
}

std::string value_of(const YamlNode& map, const std::string& key) {
  const YamlNode* value = map.find(key);
  return value != nullptr && value->is_text() ? value->text : "";
}

}  // namespace

TEST_CASE("every field case says what it is, and is tried", "[field]") {
  const auto tested = tried_by_tests();
  const auto cases = all_cases();
  for (const auto& [name, folder] : cases) {
    INFO(folder.string());
    CHECK((tested.contains(name) || fs::exists(folder / "try.sh")));
    const ParsedYaml read = parse_yaml(text_of(folder / "case.yaml"));
    REQUIRE(read.errors.empty());
    for (const char* key : {"area", "kind", "source", "right", "before"}) {
      INFO(key);
      CHECK(!value_of(read.root, key).empty());
    }
    CHECK(value_of(read.root, "area") == folder.parent_path().filename());
    CHECK((value_of(read.root, "before") == "wrong" || value_of(read.root, "before") == "right"));
  }
  for (const std::string& name : tested) {
    INFO(name);
    CHECK(cases.contains(name));
  }
}

}  // namespace muster::tests
