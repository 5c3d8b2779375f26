// What this machine and ssh's configuration know of the hosts of a list. Runs `ssh -G` and `getent`, several
// at once, and all of them together until one limit; nothing is sent to a host. Thread safety: stateless
// functions.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "cli/hosts_file.h"

namespace muster::cli {

struct HostLookUp {
  bool by_ssh = true;      // destinations are passed to ssh, whose configuration resolves names
  std::string ssh_config;  // ssh -F; "": ssh's own
};

// How long the look-ups of so many words may take: a name server that does not respond costs seconds, and a
// slow machine can start as many programs.
DurationMs look_up_limit(size_t words);

struct LookedUp {
  // Host -> IPv4 address: the one in its destination, or what its host name resolves to on this machine,
  // which may be a loopback address and need not be known to other hosts. Hosts without one are left out.
  std::map<std::string, std::string> addresses;
  size_t too_late = 0;  // hosts of which nothing is known because the limit was reached
};
LookedUp look_up_addresses(const HostLookUp& how, const std::vector<ListedHost>& hosts, DurationMs limit);

// Returns those of the words that ssh's configuration leads to another host (leads_elsewhere() in
// cli/host_words.h). A word that is looked up too late is none: its line then needs `destination=`.
std::set<std::string> known_aliases(const HostLookUp& how, const std::set<std::string>& words);

}  // namespace muster::cli
