// The configuration of the provisioning network of a new system, for systemd-networkd. Pure functions.
#pragma once

#include <map>
#include <string>

#include "agent/image/boot_network.h"
#include "base/wire.h"

namespace muster {

// Returns path -> content. `way`: the route of this machine to the controller during installation; its bond
// or VLAN is also set up in the new system, because a machine without power control is reachable only through
// that network.
std::map<std::string, std::string> network_files(const wire::ImageJob& job, const RamNetwork& way);

}  // namespace muster
