// The table of NVIDIA's error numbers in the kernel log: Xids of GPUs and SXids of NVSwitches, compiled in
// from hardware/xids.yaml, which explains the classes. Thread safety: any thread; constant after the first
// call.
#pragma once

#include <map>
#include <string>

namespace muster::kernels {

struct XidEntry {
  // Class: "hardware", "severity", "recovery", "application", "event", "unknown"; SXids: "fatal", "nonfatal".
  std::string group = {};
  std::string name = {}, since = {}, source = {};  // `since`: empty if the table does not give it
};

struct XidTable {
  std::map<int, XidEntry> xids = {}, sxids = {};
};

// Parses text in the format of hardware/xids.yaml; other lines are ignored.
XidTable read_xid_table(const std::string& text);
const XidTable& xid_table();
// "unknown" if it is not in the table.
std::string xid_group(int xid);
std::string sxid_group(int sxid);

}  // namespace muster::kernels
