// What this machine and ssh's configuration know of the hosts of a list. Runs `ssh -G` and `getent`, several
// at once, each for at most ten seconds; nothing is sent to a host. Thread safety: stateless functions.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/hosts_file.h"

namespace muster::cli {

struct HostLookUp {
  bool by_ssh = true;      // destinations are passed to ssh, whose configuration resolves names
  std::string ssh_config;  // ssh -F; "": ssh's own
};

// Returns host -> IPv4 address: the one in its destination, or what its host name resolves to on this
// machine, which may be a loopback address and need not be known to other hosts. Hosts without one are left
// out.
std::map<std::string, std::string> looked_up_addresses(const HostLookUp& how,
                                                       const std::vector<ListedHost>& hosts);

// Returns those of the words that ssh's configuration gives another host name.
std::set<std::string> known_aliases(const HostLookUp& how, const std::set<std::string>& words);

}  // namespace muster::cli
