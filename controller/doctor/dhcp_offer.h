// The request with which other DHCP servers are found, and what answers it: packets of IPv4 with UDP and
// DHCP in them, as they are sent and received below the Ethernet header. Pure functions; what is received may
// be anything.
//
// The request is that of firmware that boots over the network, so that a server answers, too, that gives such
// machines no address but what to boot. It has the port's own MAC address, since switches that guard DHCP
// drop others, and requests a broadcast, since the port takes no other answer. It reserves nothing: no
// request for what is offered follows.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::doctor {

using MacBytes = std::array<uint8_t, 6>;

// An IPv4 packet to everyone on the link.
std::string dhcp_discover(const MacBytes& mac, uint32_t transaction);

struct DhcpOffer {
  std::string server;   // "10.20.0.5": its identifier, else where the packet came from
  std::string address;  // that it would give; "0.0.0.0": only what to boot
  bool operator==(const DhcpOffer&) const = default;
};
// The offer in an IPv4 packet; nullopt: it is something else, damaged, or the answer to another transaction.
std::optional<DhcpOffer> read_dhcp_offer(std::string_view packet, uint32_t transaction);

}  // namespace muster::doctor
