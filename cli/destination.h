// Where a host is reached, as ssh takes it: [USER@]HOST, or ssh://[USER@]HOST[:PORT]. HOST is a name, or an
// IPv4 or IPv6 address; `ssh` itself finds out what a name means (Host, HostName, ProxyJump of its
// configuration). Thread: pure functions.
#pragma once

#include <string>

namespace muster::cli {

// What is wrong with it; "" when nothing is. The text stays one word of an argument list, is no option, and
// has no character that a shell would take for its own, in host or user.
std::string wrong_destination(const std::string& text);

// "host" or "host:port" in lower case, without the user: two destinations of one key lead to one machine.
// Different keys may, too.
std::string destination_key(const std::string& text);

}  // namespace muster::cli
