// Where a host is reached, as ssh takes it: [USER@]HOST, or ssh://[USER@]HOST[:PORT]. HOST is a name, or an
// IPv4 or IPv6 address; `ssh` itself resolves a name (Host, HostName, ProxyJump of its configuration).
// Thread: pure functions.
#pragma once

#include <string>

namespace muster::cli {

// Its error; "" if valid. A valid text is one word of an argument list, not an option, and has no character
// in host or user that a shell would interpret.
std::string wrong_destination(const std::string& text);

// "host" or "host:port" in lower case, without the user: two destinations with the same key are one machine.
// Different keys may also be the same machine.
std::string destination_key(const std::string& text);

}  // namespace muster::cli
