// Sets up the RAM system's network from its kernel command line (agent/image/boot_network.h): finds ports by
// MAC, bonds, tags, addresses, routes. By sysfs and ioctl: no program is run. Thread: process 1 of the RAM
// system.
#pragma once

#include <functional>
#include <string>

#include "agent/image/boot_network.h"
#include "base/result.h"
#include "sys/os.h"

namespace muster {

// Creates the bond "mbond" from those ports of the network that are present; the ports are down and get no
// address. Returns its name. not_found if none is present. `load`: loads a kernel module by name.
Result<std::string> make_bond(const Files& files, const RamNetwork& network,
                              const std::function<Status(const std::string&)>& load);
// Sets the address on `device`, which is a port or a bond, or on the VLAN that is created on it; returns the
// name of the device with the address.
Result<std::string> address_device(const std::string& device, const RamNetwork& network,
                                   const std::function<Status(const std::string&)>& load);

}  // namespace muster
