// The RAM system's network, from its kernel command line (agent/boot_network.h): ports found by MAC, bonded,
// tagged, addressed and routed. By sysfs and ioctl: no program is run. Thread: process 1 of the RAM system.
#pragma once

#include <functional>
#include <string>

#include "agent/boot_network.h"
#include "base/os.h"
#include "base/result.h"

namespace muster {

// Creates the bond "mbond" from the network's ports that are present; they are down and get no address of
// their own. Returns its name. not_found if none is present. `load`: loads a kernel module by name.
Result<std::string> make_bond(const Files& files, const RamNetwork& network,
                              const std::function<Status(const std::string&)>& load);
// Sets the address on `device`, which is a port or a bond, or on the VLAN that is created on it; returns the
// name of the device with the address.
Result<std::string> address_device(const std::string& device, const RamNetwork& network,
                                   const std::function<Status(const std::string&)>& load);

}  // namespace muster
