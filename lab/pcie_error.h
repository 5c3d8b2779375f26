// A script that makes a guest's kernel count a PCIe error. Thread: a pure function.
#pragma once

#include <string>

namespace muster::lab {

// A shell script for root: the port above the NVMe drive with this serial has one corrected error (receiver
// error). Exit 1, and nothing was injected, when there is no such drive or no port above it.
std::string pcie_error_script(const std::string& serial);

}  // namespace muster::lab
