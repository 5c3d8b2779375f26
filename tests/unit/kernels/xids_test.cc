// The table of Xids: what is shipped, what kernels/counters/xids.cc makes of it, and what the documentation
// shows.
#include "kernels/counters/xids.h"

#include <fmt/format.h>

#include <set>

#include "controller/spec/yaml.h"
#include "tests/catch.h"
#include "tests/source_dir.h"

using namespace muster;
using namespace muster::kernels;

namespace {

const YamlNode& field(const YamlNode& entry, const char* key) {
  static const YamlNode kNone;
  const YamlNode* value = entry.find(key);
  return value == nullptr ? kNone : *value;
}

std::vector<int> of_group(const std::map<int, XidEntry>& entries, const std::string& group) {
  std::vector<int> out;
  for (const auto& [code, entry] : entries)
    if (entry.group == group) out.push_back(code);
  return out;
}

// "8, 11, 39-41"
std::string ranges(const std::vector<int>& codes) {
  std::string out;
  for (size_t i = 0; i < codes.size();) {
    size_t end = i;
    while (end + 1 < codes.size() && codes[end + 1] == codes[end] + 1) ++end;
    const char* between = end == i + 1 ? ", " : "-";
    out += fmt::format("{}{}", out.empty() ? "" : ", ", codes[i]);
    if (end > i) out += fmt::format("{}{}", between, codes[end]);
    i = end + 1;
  }
  return out;
}

}  // namespace

TEST_CASE("the table of Xids is read as YAML reads it") {
  const ParsedYaml file = parse_yaml(text_of(source_dir() + "/hardware/xids.yaml"));
  REQUIRE(file.errors.empty());
  const XidTable& table = xid_table();
  for (const auto& [key, entries] : {std::pair{"xids", &table.xids}, std::pair{"sxids", &table.sxids}}) {
    const YamlNode& listed = field(file.root, key);
    REQUIRE(listed.items.size() > 50);
    CHECK(listed.items.size() == entries->size());  // no number twice
    for (const auto& line : listed.items) {
      const std::string code = field(line, "code").text;
      CAPTURE(key, code);
      REQUIRE(entries->count(std::atoi(code.c_str())) == 1);
      const XidEntry& read = entries->at(std::atoi(code.c_str()));
      CHECK(read.group == field(line, "class").text);
      CHECK(read.name == field(line, "name").text);
      CHECK(read.since == field(line, "since").text);
      CHECK(read.source == field(line, "source").text);
    }
  }
}

TEST_CASE("the table of Xids has known classes, and a source for each number") {
  const std::set<std::string> classes = {"hardware", "severity",    "recovery",
                                         "event",    "application", "unknown"};
  const std::set<std::string> sources = {"catalog", "earlier table", "fabric manager guide"};
  for (const auto& [code, entry] : xid_table().xids) {
    CAPTURE(code);
    CHECK(classes.count(entry.group) == 1);
    CHECK(sources.count(entry.source) == 1);
    CHECK(!entry.name.empty());
  }
  for (const auto& [code, entry] : xid_table().sxids) {
    CAPTURE(code);
    CHECK((entry.group == "fatal" || entry.group == "nonfatal"));
    CHECK(sources.count(entry.source) == 1);
  }
  CHECK(xid_group(79) == "hardware");
  CHECK(xid_group(13) == "application");
  CHECK(xid_group(145) == "severity");
  CHECK(xid_group(154) == "recovery");
  CHECK(xid_group(7) == "unknown");
  CHECK(sxid_group(22013) == "nonfatal");
  CHECK(sxid_group(1) == "unknown");
}

TEST_CASE("a number without a source is unknown, whatever class its line gives it") {
  const XidTable read = read_xid_table(
      "xids:\n  - { code: 200, class: hardware, name: \"a guess\" }\n"
      "  - { code: 201, class: hardware, name: \"no guess\", source: catalog }\n");
  CHECK(read.xids.at(200).group == "unknown");
  CHECK(read.xids.at(201).group == "hardware");
}

TEST_CASE("the documentation shows the table of Xids as it is") {
  const std::string page = text_of(source_dir() + "/docs/acceptance-gpu.md");
  for (const char* group : {"hardware", "severity", "recovery", "application", "event", "unknown"}) {
    const std::string row = fmt::format("| {} | {} |", group, ranges(of_group(xid_table().xids, group)));
    CAPTURE(row);
    CHECK(page.find(row) != std::string::npos);
  }
}
