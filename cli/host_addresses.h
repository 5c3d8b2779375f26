// Finds the address by which other hosts reach a host, if none is listed for it. Thread: any; blocks.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/hosts_file.h"

namespace muster::cli {

struct AddressLookUp {
  bool by_ssh = true;      // destinations are passed to ssh, whose configuration resolves names (`ssh -G`)
  std::string ssh_config;  // ssh -F; "": ssh's own
};

// Returns host -> IPv4 address: the listed one, the one in its destination, or what its host name resolves to
// on this machine. Hosts without a known address are left out. Looks up several at once.
std::map<std::string, std::string> addresses_of(const AddressLookUp& how,
                                                const std::vector<ListedHost>& hosts);

}  // namespace muster::cli
