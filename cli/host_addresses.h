// The address under which the other hosts reach a host, if its list does not give it. Thread: blocks; any.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/hosts_file.h"

namespace muster::cli {

struct AddressLookUp {
  bool by_ssh = true;      // destinations go to ssh, whose configuration resolves names (`ssh -G`)
  std::string ssh_config;  // ssh -F; "": ssh's own
};

// Host -> IPv4 address: as listed, as in its destination, or as the name that is connected to resolves on
// this machine. Hosts without a known address are left out. Looks up several at once.
std::map<std::string, std::string> addresses_of(const AddressLookUp& how,
                                                const std::vector<ListedHost>& hosts);

}  // namespace muster::cli
