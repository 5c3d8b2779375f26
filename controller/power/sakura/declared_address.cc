#include "controller/power/sakura/declared_address.h"

#include <fmt/format.h>

#include "controller/spec/address.h"

namespace muster {

DeclaredAddresses declared_addresses(const Spec& spec, const std::string& node) {
  DeclaredAddresses out;
  out.network = spec.network.provisioning.cidr;
  for (const NodeSpec& one : spec.nodes) {
    if (one.name == node)
      out.own = one.address, out.chosen = one.address_chosen;
    else if (!one.address_chosen)
      out.others.emplace(one.address, one.name);
  }
  return out;
}

Result<std::string> address_of_server(const std::string& node, const std::string& server,
                                      const std::string& reported, const DeclaredAddresses& declared) {
  if (reported.empty()) return declared.own;
  if (declared.own.empty() || declared.chosen || reported == declared.own) return reported;
  const auto number = parse_ipv4(reported);
  const auto network = parse_cidr(declared.network);
  const auto other = declared.others.find(reported);
  const bool inside = number && network.ok() && network->contains(*number);
  if (other == declared.others.end() && !inside) return reported;
  const std::string whose = other == declared.others.end()
                                ? "an address in network.provisioning"
                                : fmt::format("which is the declared address of {}", other->second);
  return fail(
      Code::denied,
      fmt::format("server {0} has the address {1} in the provider's API, {2}, but {3} is declared with {4}: "
                  "nothing was done. One of the two belongs to another server: correct power.address (the "
                  "server's id) or address of {3} in the spec. If the id was wrong, remove {3} from the spec "
                  "first: `muster node rm {3}` then removes the record of server {0}",
                  server, reported, whose, node, declared.own));
}

}  // namespace muster
