// The SSH destination of a host: [USER@]HOST, or ssh://[USER@]HOST[:PORT]. HOST is a name, or an IPv4 or IPv6
// address; `ssh` itself resolves a name (Host, HostName, ProxyJump of its configuration). Thread safety:
// stateless functions.
#pragma once

#include <string>

namespace muster::cli {

// Returns what is wrong with a destination; "" if it is valid. A valid one is a single argument, not an
// option, and has no character in host or user that a shell would interpret.
std::string wrong_destination(const std::string& text);

// Returns "host" or "host:port" in lower case, without the user. Two destinations with the same key are the
// same machine; two with different keys may also be the same machine.
std::string destination_key(const std::string& text);

}  // namespace muster::cli
