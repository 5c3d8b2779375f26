// The hosts of `muster accept`: a hosts file, or the text of `--hosts`, as a list.
//
//     [NAME] DESTINATION [address=IP] [group=WORD]     # one host per line
//     gpu[01-32] admin@10.0.3.[1-32] address=10.0.3.{n} group=h100
//     DGX-01.site.org
//     -gpu07                                           # not this one
//
// DESTINATION is what `ssh` takes (cli/destination.h). NAME is what the host is called here; without one it
// is made from the destination, and depends on nothing else (host_label()). Ranges are those of
// cli/host_range.h; one in a destination or an address has as many values as that of the names, and they are
// matched in order; {n}, {n+10}, {n-1} stand for the number in the name, as in a spec. A host is compared
// only with hosts of its `group`. `#` begins a comment; blanks and tabs separate words.
//
// Two plain words in a line are an error: whether the second one is where the first is reached, another host,
// a login or an attribute, nothing in it says, and a wrong guess measures a host under another one's name. A
// second word is a destination if it has the signs of one, or ssh's configuration knows it as an alias;
// behind `destination=` any word is. Genders files and Ansible's INI inventories (cli/inventory.h) are read
// as well.
//
// A destination is passed to a program as one argument, and `ssh` may insert it into a shell command
// (ProxyCommand, Match exec): anything that would be an option, or is special to a shell, is rejected. Thread
// safety: stateless functions.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "controller/spec/spec.h"

namespace muster::cli {

struct ListedHost {
  std::string name;         // valid for a node
  std::string written;      // what the list has in its place: "DGX_01"; often the same
  std::string destination;  // "gpu07", "admin@10.0.3.7:2222", "[2001:db8::7]"
  std::string address;      // IPv4; empty: not given
  std::string group;        // empty: not given
  int line = 0, column = 0;
};

struct HostsFile {
  std::vector<ListedHost> hosts;    // in order of the text, ranges expanded; at most kMostHosts
  std::vector<SpecError> errors;    // all of them, by line and column; empty: usable
  std::vector<SpecError> warnings;  // several names have one destination: whether they are one machine is
                                    // known only after they have answered (controller/plan/machine_parts.h)
};

inline constexpr size_t kMostHosts = 4096;
inline constexpr size_t kMostBytesOfHosts = 1 << 20;

// Returns those of the words for which ssh's configuration has another host name (`ssh -G`). Called at most
// once, with the plain second words of all lines.
using KnownAliases = std::function<std::set<std::string>(const std::set<std::string>& words)>;

// All failures are in `errors`. `aliases` null: ssh's configuration knows none.
HostsFile read_hosts_file(const std::string& text, const KnownAliases& aliases = {});
// Parses the text of `--hosts`: the same format, with commas (outside of brackets) or line ends.
HostsFile read_hosts_option(const std::string& text, const KnownAliases& aliases = {});

}  // namespace muster::cli
