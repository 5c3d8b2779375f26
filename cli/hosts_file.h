// The hosts of `muster accept`: a hosts file, or the text of `--hosts`, as a list.
//
//     NAME [DESTINATION] [address=IP] [group=WORD]     # one host per line
//     gpu[01-32] admin@10.0.3.[1-32] address=10.0.3.{n} group=h100
//
// NAME follows the rules of node names in a spec; its ranges are those of a spec. DESTINATION is passed to
// ssh; default: NAME. A range in a destination or an address has as many values as the range of names, and
// the two are matched in order; {n}, {n+10}, {n-1} stand for the number in the name, as in a spec. The `[` of
// an IPv6 address does not begin a range. A host is compared only with hosts of its `group`. `#` begins a
// comment; blanks and tabs separate words; lines end in LF or CRLF; a UTF-8 byte order mark is skipped.
//
// A destination is passed to a program as one argument, and `ssh` may insert it into a shell command
// (ProxyCommand, Match exec): anything that would be an option, or is special to a shell, is rejected. Thread
// safety: stateless functions.
#pragma once

#include <string>
#include <vector>

#include "controller/spec/spec.h"

namespace muster::cli {

struct ListedHost {
  std::string name;
  std::string destination;  // "gpu07", "admin@10.0.3.7", "ssh://admin@[2001:db8::7]:2222"
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

// All failures are in `errors`.
HostsFile read_hosts_file(const std::string& text);
// Parses the text of `--hosts`: the same format, with commas (outside of brackets) instead of line ends.
HostsFile read_hosts_option(const std::string& text);

}  // namespace muster::cli
