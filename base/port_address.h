// MAC addresses: whether one tells a machine from all others. Pure.
#pragma once

#include <string>

namespace muster {

// "52:54:00:20:00:01", in either case: an address that a port can have. Not zero, not multicast.
bool is_port_address(const std::string& mac);
// An address that one port alone has, as far as its text shows: given by a maker (a locally administered
// one is chosen by firmware, a driver or a person, and BMCs give the same one to each of their USB ports),
// and not one of those that many ports are known to share.
bool names_one_port(const std::string& mac);

}  // namespace muster
