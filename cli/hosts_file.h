// The hosts of `muster accept`: a hosts file, or the text of `--hosts`, as a list.
//
//     NAME [DESTINATION] [address=IP] [group=WORD]     # a host a line
//     gpu[01-32] admin@10.0.3.[1-32] address=10.0.3.{n} group=h100
//
// NAME follows the rules of node names in a spec; its ranges are those of a spec. DESTINATION is what ssh is
// given, NAME where it is absent. The range of a destination or an address has as many values as the one of
// the names and goes in step with it; {n}, {n+10}, {n-1} stand for the number of the name, as in a spec. `[`
// of an IPv6 address begins no range. `group` bounds the fleet that a host is compared with. `#` begins a
// comment; blanks and tabs separate; lines end in LF or CRLF; a byte order mark of UTF-8 is left out.
//
// A destination goes to a program as one word of its arguments, and `ssh` may put it into a shell's line
// (ProxyCommand, Match exec): what would be an option there, or have a meaning in a shell, is refused.
// Thread: pure functions.
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
  std::vector<ListedHost> hosts;    // in the order of the text, ranges expanded; at most kMostHosts
  std::vector<SpecError> errors;    // all of them, by line and column; empty: usable
  std::vector<SpecError> warnings;  // several names for one destination: whether they are one machine shows
                                    // only when it has answered (controller/plan/machine_parts.h)
};

inline constexpr size_t kMostHosts = 4096;
inline constexpr size_t kMostBytesOfHosts = 1 << 20;

// `text` is the content of a hosts file. Never fails otherwise than through `errors`.
HostsFile read_hosts_file(const std::string& text);
// The text of `--hosts`: the same, with a comma (outside of brackets) where a file has the end of a line.
HostsFile read_hosts_option(const std::string& text);

}  // namespace muster::cli
