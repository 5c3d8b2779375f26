// Parses the table of Xids. No YAML library: muster-accept is one static file that goes to every node.
#include "kernels/counters/xids.h"

#include <algorithm>
#include <cstdlib>

#include "base/split.h"

namespace muster::embedded {
extern const char* const xids;  // hardware/xids.yaml
}

namespace muster::kernels {
namespace {

// The value of `key` in "  - { code: 48, class: hardware, name: "...", ... }"; "" when the line has none.
std::string value_of(const std::string& line, const std::string& key) {
  for (const char* before : {"{ ", ", "}) {
    const std::string mark = before + key + ": ";
    const size_t at = line.find(mark);
    if (at == std::string::npos) continue;
    const size_t begin = at + mark.size();
    if (line[begin] == '"') return line.substr(begin + 1, line.find('"', begin + 1) - begin - 1);
    return line.substr(begin, std::min(line.find(", ", begin), line.find(" }", begin)) - begin);
  }
  return "";
}

std::string group_of(const std::map<int, XidEntry>& entries, int code) {
  const auto found = entries.find(code);
  return found == entries.end() ? "unknown" : found->second.group;
}

}  // namespace

XidTable read_xid_table(const std::string& text) {
  XidTable out;
  std::map<int, XidEntry>* part = nullptr;
  for (const std::string& line : split_lines(text)) {
    if (line == "xids:") part = &out.xids;
    if (line == "sxids:") part = &out.sxids;
    if (part == nullptr || !line.starts_with("  - { code: ")) continue;
    const int code = std::atoi(value_of(line, "code").c_str());
    (*part)[code] = {value_of(line, "class"), value_of(line, "name"), value_of(line, "since"),
                     value_of(line, "source")};
    // A class without a source is a guess, and a guess must not fail a node.
    if ((*part)[code].source.empty()) (*part)[code].group = "unknown";
  }
  return out;
}

const XidTable& xid_table() {
  static const XidTable table = read_xid_table(embedded::xids);
  return table;
}

std::string xid_group(int xid) { return group_of(xid_table().xids, xid); }
std::string sxid_group(int sxid) { return group_of(xid_table().sxids, sxid); }

}  // namespace muster::kernels
