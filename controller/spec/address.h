// IPv4 addresses and networks of a spec. Thread safety: plain value types, stateless functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace muster {

std::optional<uint32_t> parse_ipv4(const std::string& text);  // no leading zeros, no short forms
std::string format_ipv4(uint32_t address);

struct Cidr {
  uint32_t base = 0;
  int prefix = 0;

  uint32_t mask() const { return prefix == 0 ? 0 : ~uint32_t{0} << (32 - prefix); }
  uint32_t broadcast() const { return base | ~mask(); }
  bool contains(uint32_t address) const { return (address & mask()) == base; }
  // True for an address inside the network that is neither its first nor its last address.
  bool hosts(uint32_t address) const {
    return contains(address) && address != base && address != broadcast();
  }
  bool overlaps(const Cidr& other) const { return contains(other.base) || other.contains(base); }
};
// "10.20.0.0/24". Code::invalid states the rule and, if host bits are set, the network probably meant.
Result<Cidr> parse_cidr(const std::string& text, int shortest = 8, int longest = 30);
std::string format_cidr(const Cidr& network);
// "portal.example", "node01": letters, digits and '-' between dots. Digits and dots alone are not a name.
bool is_dns_name(const std::string& text);

}  // namespace muster
