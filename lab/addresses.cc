// IPv4 addresses of a lab's machines.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "lab/lab_spec.h"

namespace muster::lab {

Result<std::string> address_in(const std::string& cidr, uint32_t offset) {
  const auto slash = cidr.find('/');
  in_addr net{};
  if (slash == std::string::npos || inet_pton(AF_INET, cidr.substr(0, slash).c_str(), &net) != 1)
    return fail(Code::invalid, "'" + cidr + "' is not an IPv4 network such as 10.20.0.0/24");
  const int bits = prefix_length(cidr);
  if (bits < 8 || bits > 30 || offset >= (uint64_t{1} << (32 - bits)))
    return fail(Code::invalid, fmt::format("network {} has no address number {}", cidr, offset));
  const uint32_t mask = ~uint32_t{0} << (32 - bits);
  net.s_addr = htonl((ntohl(net.s_addr) & mask) + offset);
  char text[INET_ADDRSTRLEN];
  return std::string(inet_ntop(AF_INET, &net, text, sizeof text));
}

Result<std::string> address_after(const std::string& address) {
  in_addr parsed{};
  if (inet_pton(AF_INET, address.c_str(), &parsed) != 1)
    return fail(Code::invalid, "'" + address + "' is not an IPv4 address");
  parsed.s_addr = htonl(ntohl(parsed.s_addr) + 1);
  char text[INET_ADDRSTRLEN];
  return std::string(inet_ntop(AF_INET, &parsed, text, sizeof text));
}

int prefix_length(const std::string& cidr) {
  const auto slash = cidr.find('/');
  int bits = 0;
  if (slash != std::string::npos) std::from_chars(cidr.data() + slash + 1, cidr.data() + cidr.size(), bits);
  return bits;
}

void assign_addresses(LabSpec& spec, std::set<std::string> taken) {
  std::vector<LabNode*> open;
  for (auto& node : spec.nodes) {
    taken.insert(node.bmc_address);
    if (node.address.empty())
      open.push_back(&node);
    else
      taken.insert(node.address);
  }
  std::sort(open.begin(), open.end(), [](auto* a, auto* b) { return a->name < b->name; });
  uint32_t next = 11;
  for (auto* node : open) {
    auto address = address_in(spec.provisioning_cidr, next++);
    while (address && taken.count(*address)) address = address_in(spec.provisioning_cidr, next++);
    node->address = address.value_or("");
  }
}

}  // namespace muster::lab
