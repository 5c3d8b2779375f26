// A script that makes a guest's kernel count a PCIe error. Thread safety: stateless function.
#pragma once

#include <string>

namespace muster::lab {

// Returns a shell script, to be run by root, that injects one corrected error (receiver error) at the port
// above the NVMe drive with this serial. It exits with 1 if there is no such drive or no port above it.
std::string pcie_error_script(const std::string& serial);

}  // namespace muster::lab
