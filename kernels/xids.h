// NVIDIA's numbers in the kernel's log, Xid of a GPU and SXid of an NVSwitch, as hardware/xids.yaml has them;
// the file is part of the program. What a class means is said there.
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

// What is written like that file; a line in another form is none of the table's.
XidTable read_xid_table(const std::string& text);
// The one that is shipped.
const XidTable& xid_table();
// The class of a number; "unknown" of one that the table lacks.
std::string xid_group(int xid);
std::string sxid_group(int sxid);

}  // namespace muster::kernels
