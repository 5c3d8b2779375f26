// Finds DHCP servers on a network: broadcasts the request of controller/doctor/dhcp_offer.h from this machine
// and gathers every answer, of more servers than the first.
//
// Below UDP, so that neither a firewall nor a DHCP client of this machine takes an answer, and so that a
// machine without an address on that port could do it, too. Needs CAP_NET_RAW. A server on this very machine
// does not get the request; its port shows it. Thread: blocking; for worker threads.
#pragma once

#include <string>

#include "base/time.h"
#include "controller/doctor/judges.h"

namespace muster::doctor {

// Longer than a server takes that pings an address before it offers it.
inline constexpr DurationMs kListenForOffers = 6 * kSecond;

// `address`: this machine's in that network. not_found: it has none there; denied: it may not send such
// packets.
Result<DhcpSeen> find_dhcp_servers(const std::string& address, DurationMs listen = kListenForOffers);

}  // namespace muster::doctor
