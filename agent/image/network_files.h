// The provisioning network of a new system, as systemd-networkd reads it. Pure.
#pragma once

#include <map>
#include <string>

#include "agent/boot_network.h"
#include "base/wire.h"

namespace muster {

// Path -> content. `way`: how this machine reaches the controller during installation; a bond or a VLAN in it
// is also set up in the new system, because a machine without power control is reachable only through that
// network.
std::map<std::string, std::string> network_files(const wire::ImageJob& job, const RamNetwork& way);

}  // namespace muster
