// Checks by its address whether a provider's server is the node's: the provider assigns addresses, the spec
// declares them, and nothing else can be compared before its system is reached. Pure functions, no I/O.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "controller/spec/spec.h"

namespace muster {

struct DeclaredAddresses {
  std::string own;                            // the node's address; "": none
  bool chosen = false;                        // `own` was chosen by muster, so the provider does not have it
  std::string network;                        // the provisioning network, "10.20.0.0/24"
  std::map<std::string, std::string> others;  // declared addresses of other nodes -> node
};
DeclaredAddresses declared_addresses(const Spec& spec, const std::string& node);

// Returns the server's address: the provider's, or the node's if the provider reports none. denied: it is a
// different server, since the provider's address is in the provisioning network but is not the declared one,
// or is another node's. An address that muster chose, or one outside that network, proves nothing.
Result<std::string> address_of_server(const std::string& node, const std::string& server,
                                      const std::string& reported, const DeclaredAddresses& declared);

}  // namespace muster
