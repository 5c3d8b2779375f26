// NVIDIA's numbers in the kernel's log, Xid of a GPU and SXid of an NVSwitch, as hardware/xids.yaml has them;
// the file is part of the program. The classes are explained there.
// Thread: constant after the first call.
#pragma once

#include <map>
#include <string>

namespace muster::kernels {

struct XidEntry {
  // "hardware", "severity", "recovery", "application", "event", "unknown"; "fatal", "nonfatal" of an SXid.
  std::string group = {};
  std::string name = {}, since = {}, source = {};  // `since` is empty where the table has none
};

struct XidTable {
  std::map<int, XidEntry> xids = {}, sxids = {};
};

// Parses text in the format of that file; lines in any other form are ignored.
XidTable read_xid_table(const std::string& text);
// The shipped table.
const XidTable& xid_table();
// The class of an Xid; "unknown" if it is not in the table.
std::string xid_group(int xid);
std::string sxid_group(int sxid);

}  // namespace muster::kernels
