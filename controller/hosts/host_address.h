// Where the hosts of a list reach one another: decided once, from what the list, this machine and the hosts
// themselves know. No I/O; thread safety: stateless functions.
//
// `address=` of the list wins. Else it is the address that the destination has, or has on this machine, if it
// is one of the host's own (or the host did not report any); else the one at which sshd took the connection,
// which behind a jump host is the first that anyone knows; else one of its own in the network that most hosts
// of the list share. A loopback address (`127.0.1.1 HOSTNAME` in /etc/hosts) is none, and neither is one that
// several hosts have, as those of container bridges.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace muster {

struct HostAddresses {
  std::string name;
  std::string listed = {};            // address= in the list
  std::string looked_up = {};         // from its destination, on this machine
  std::string server = {};            // where the host's sshd took the connection (SSH_CONNECTION)
  std::vector<std::string> own = {};  // of its ports, with the prefix of the network: "10.0.0.11/24"
};

struct ChosenAddresses {
  std::map<std::string, std::string> address;  // of each host that is not refused
  std::map<std::string, std::string> refused;  // host -> why, with what to do
};

// `needed` false: nothing that is measured needs addresses, so hosts get placeholders if they have none that
// fit together, and none is refused. All that are chosen are in one network of /8 to /30, each once.
ChosenAddresses choose_addresses(const std::vector<HostAddresses>& hosts, bool needed);

// True for an IPv4 address that can be a single host's for others: not this network's, loopback, link-local,
// multicast or reserved.
bool reaches_one_host(const std::string& address);

}  // namespace muster
