#include "controller/plan/closed_port.h"

#include <algorithm>
#include <array>

#include "controller/spec/address.h"

namespace muster {
namespace {

// Ports of obsolete services: discard, echo, daytime, chargen, time. The playbook opens none of them; it
// opens 22, 123 and all ports from 1024 on.
constexpr std::array<uint16_t, 5> kCandidates = {9, 7, 13, 19, 37};

// True if the address is in `network`, which is a network or an address; empty: any address.
bool is_from(const std::string& network, uint32_t address) {
  if (network.empty()) return true;
  if (const auto one = parse_ipv4(network)) return *one == address;
  const auto cidr = parse_cidr(network, 0, 32);
  return cidr.ok() && cidr->contains(address);
}

bool lets_in(const FirewallRule& rule, uint32_t address, uint16_t port) {
  if (rule.proto == "udp" || !is_from(rule.from, address)) return false;
  if (rule.ports.empty()) return true;
  const size_t colon = rule.ports.find(':');
  const int first = std::stoi(rule.ports),
            last = colon == std::string::npos ? first : std::stoi(rule.ports.substr(colon + 1));
  return first <= port && port <= last;
}

}  // namespace

std::optional<uint16_t> closed_port(const Spec& spec, const NodeSpec& node,
                                    const std::string& controller_address) {
  if (node.address == controller_address) return std::nullopt;
  const auto address = parse_ipv4(node.address);
  if (!address) return std::nullopt;
  // The provisioning and storage networks may be the same.
  if (const std::string& storage = spec.network.storage.cidr; !storage.empty() && is_from(storage, *address))
    return std::nullopt;
  for (const uint16_t port : kCandidates)
    if (std::none_of(spec.firewall.begin(), spec.firewall.end(),
                     [&](const FirewallRule& rule) { return lets_in(rule, *address, port); }))
      return port;
  return std::nullopt;
}

}  // namespace muster
