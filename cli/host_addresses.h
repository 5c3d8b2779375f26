// The address under which the other hosts reach a host, where its list does not say so. Thread: blocks; any.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/hosts_file.h"

namespace muster::cli {

struct AddressLookUp {
  bool by_ssh = true;      // destinations are ssh's: its configuration says what a name means (`ssh -G`)
  std::string ssh_config;  // ssh -F; "": ssh's own
};

// Host -> IPv4 address: as listed, as its destination says, or what the name that is connected to means here.
// Hosts of which none is known are left out. Looks some of them up at once.
std::map<std::string, std::string> addresses_of(const AddressLookUp& how,
                                                const std::vector<ListedHost>& hosts);

}  // namespace muster::cli
