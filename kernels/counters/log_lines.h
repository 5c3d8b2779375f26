// Lines of the kernel's log about drives and network ports that failed. Users control parts of the log (a
// program that crashes is logged with its name), so a line counts by its beginning. Thread safety: stateless
// functions; one thread at a time per NicLines.
#pragma once

#include <set>
#include <string>

#include "sys/os.h"

namespace muster::kernels {

// --- drive_lines.cc "nvme3", "sdb", "ata3.00": the drive of this machine that did not answer, was reset or
// was given up; "" for any other line. Not media that can be removed (also a BMC's virtual ones), loop
// devices, and drives of other hosts.
std::string drive_at_fault(const Files& files, const std::string& text);

// --- nic_lines.cc
struct NicLine {
  std::string address = {};  // PCI address, or the interface of a port without one; empty: not such a line
  bool fault = false;        // false: worth a note
};
class NicLines {
 public:
  explicit NicLines(const Files& files) : files_(files) {}
  // Lines in their order: one event of the firmware's health has several.
  NicLine read(const std::string& text);

 private:
  NicLine stuck(const std::string& interface) const;

  const Files& files_;
  std::set<std::string> announced_ = {};  // adapters whose event an earlier line reported
};

}  // namespace muster::kernels
