// The SSH destination of a host: [ssh://][USER@]HOST[:PORT]. HOST is a name, or an IPv4 or IPv6 address, the
// latter also in brackets, and with a port always so; `ssh` itself resolves a name (Host, HostName, ProxyJump
// of its configuration). Thread safety: stateless functions.
#pragma once

#include <string>

namespace muster::cli {

// Returns what is wrong with a destination; "" if it is valid. A valid one is a single argument, not an
// option, and has no character in host or user that a shell would interpret.
std::string wrong_destination(const std::string& text);

// Returns the destination in the form that `ssh` takes: it knows ports and brackets only behind ssh://.
std::string ssh_argument(const std::string& text);

// Returns the host, in lower case, without brackets, user and port.
std::string destination_host(const std::string& text);
// As written; "" if none is. `gpu01:22` is more than `gpu01`, for which ssh's configuration may have a port.
std::string destination_port(const std::string& text);
// The port that distinguishes this host from others at its address; "" for none and for 22, sshd's own.
std::string distinct_port(const std::string& text);

// Returns the destination with this user and this port instead of its own; "": its own.
std::string with_user_and_port(const std::string& text, const std::string& user, const std::string& port);

// True for a word that is more than the name of a host: it has a user, a port, brackets or ssh://, or is an
// IPv6 address.
bool has_login_signs(const std::string& word);
// True for a word that is more than a plain name: it has one of those, or a dot.
bool has_destination_signs(const std::string& word);

// Returns "host" or "host:port" in lower case, without the user. Two destinations with the same key are the
// same machine; two with different keys may also be the same machine.
std::string destination_key(const std::string& text);

}  // namespace muster::cli
