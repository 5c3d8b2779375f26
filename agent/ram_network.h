// The RAM system's network, from its kernel command line (agent/boot_network.h): ports found by MAC, bonded,
// tagged, addressed and routed. By sysfs and ioctl: no program is run. Thread: process 1 of the RAM system.
#pragma once

#include <functional>
#include <string>

#include "agent/boot_network.h"
#include "base/os.h"
#include "base/result.h"

namespace muster {

// Creates the bond "mbond" of those of the network's ports that are present, which are down and get no
// address of their own; returns its name. not_found if none is present. `load`: loads a kernel module by
// name.
Result<std::string> make_bond(const Files& files, const RamNetwork& network,
                              const std::function<Status(const std::string&)>& load);
// Addresses `device`, which is a port or a bond, or the VLAN that is made on it; the name of what has the
// address now.
Result<std::string> address_device(const std::string& device, const RamNetwork& network,
                                   const std::function<Status(const std::string&)>& load);

}  // namespace muster
