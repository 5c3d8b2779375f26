// Whether a server that a provider names is the node's, by its address: the provider assigns the addresses,
// the spec declares them, and before its system is reached nothing else can be compared. Pure.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "controller/spec/spec.h"

namespace muster {

struct DeclaredAddresses {
  std::string own;                            // the node's; "" none
  bool chosen = false;                        // by muster, unknown to the provider
  std::string network;                        // the provisioning network, "10.20.0.0/24"
  std::map<std::string, std::string> others;  // declared ones of the other nodes: address, node
};
DeclaredAddresses declared_addresses(const Spec& spec, const std::string& node);

// The address of the server: the provider's, or the node's if the provider reports none. denied: it is
// another server, since the provider has it at another address of the provisioning network than the node's
// declared one, or at another node's. An address that muster chose, or one of another network, proves
// nothing.
Result<std::string> address_of_server(const std::string& node, const std::string& server,
                                      const std::string& reported, const DeclaredAddresses& declared);

}  // namespace muster
