// House rules as a test, continued: nothing that muster runs or writes chooses a device by a label. Another
// disk may carry the same, and which of them is found is chance. tests/tidy_test.cc says how rules are
// written.
#include <map>
#include <set>
#include <string>

#include "tests/catch.h"
#include "tests/tidy_source.h"

namespace {

using namespace muster::tidy;

// What names a device by the label of a file system, of a partition or of an array, or by the order in which
// devices answered.
const char* const kWays[] = {
    "LABEL=",   "by-label",  "by-partlabel", "PARTNAME",   "findfs",       "blkid -L",    "blkid -l",
    "mount -L", "swapon -L", "name=any:",    "--fs-label", "--part-label", "\"--label\"", "-t LABEL"};

// Where such a word stands all the same, and why it chooses nothing.
const std::map<std::string, std::string>& reasons() {
  static const std::map<std::string, std::string> all = {
      {"agent/image/seed.cc", "lines with a label are taken out of fstab"},
      {"agent/steps/disk/mount.cc", "the forms that are refused, and a label that is only compared"},
      {"agent/steps/system/own_esp.cc", "partitions of one disk, which the root file system leads to"},
      {"host/by_label.cc", "finds what earlier versions and others wrote"},
      {"controller/image/customize.cc", "partitions of one disk, which the root file system leads to"},
      {"controller/image/ram.cc", "waits for the first bearer of a PARTUUID, then counts all of them"},
      {"controller/plan/label_lines.cc", "the lines that are taken over"}};
  return all;
}

bool runs(const std::string& path) {
  static const std::set<std::string> folders = {"agent",      "base",    "bench",   "cli",
                                                "controller", "images",  "kernels", "lab",
                                                "playbooks",  "scripts", "systemd"};
  return folders.count(path.substr(0, path.find('/'))) > 0 && !path.ends_with(".md");
}

// A comment of a script, a unit or a playbook.
bool is_remark(const std::string& line) {
  const size_t at = line.find_first_not_of(' ');
  return at == std::string::npos || line[at] == '#';
}

Complaints labels(const Source& source) {
  Complaints bad;
  const std::string text = is_cpp(source.path) ? without_comments(source.text) : source.text;
  size_t number = 0;
  for (const auto& line : lines_of(text)) {
    ++number;
    if (!is_cpp(source.path) && is_remark(line)) continue;
    for (const char* way : kWays)
      if (line.find(way) != std::string::npos && !reasons().count(source.path))
        bad.push_back(source.path + ":" + std::to_string(number) + ": " + way +
                      " chooses a device by a label");
  }
  return bad;
}

}  // namespace

TEST_CASE("tidy: the rule about labels can fail", "[tidy]") {
  for (const char* line : {"source: \"LABEL=scratch\"\n", "mount PARTLABEL=x /y\n",
                           "dev=$(blkid -L scratch)\n", "search --fs-label root\n"})
    CHECK(labels({"playbooks/x.yaml", line}).size() >= 1);
  CHECK(labels({"agent/x.cc", "const char* k = \"/dev/disk/by-label/x\";\n"}).size() == 1);
  CHECK(labels({"agent/x.cc", "// by-label\n"}).empty());
  CHECK(labels({"playbooks/x.yaml", "  # LABEL=x chooses\n"}).empty());
  CHECK(labels({"host/by_label.cc", "\"LABEL=\"\n"}).empty());
}

TEST_CASE("tidy: no label chooses a device", "[tidy]") {
  CHECK(over_tree(labels, runs) == "");
  // No exception outlives its reason.
  for (const auto& [path, reason] : reasons()) {
    INFO(path << ": " << reason);
    bool needed = false;
    for (const auto& source : tree())
      if (source.path == path)
        for (const char* way : kWays)
          needed = needed || without_comments(source.text).find(way) != std::string::npos;
    CHECK(needed);
  }
}
