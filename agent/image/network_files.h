// The provisioning network of a new system, as systemd-networkd reads it. Pure.
#pragma once

#include <map>
#include <string>

#include "agent/boot_network.h"
#include "base/wire.h"

namespace muster {

// Path -> content. `way`: how this machine reaches the controller while it is installed; a bond or a VLAN in
// it is the new system's, too, since nothing but that network leads to a machine that nothing can switch.
std::map<std::string, std::string> network_files(const wire::ImageJob& job, const RamNetwork& way);

}  // namespace muster
