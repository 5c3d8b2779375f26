// Where this host is reached: known here even if the machine that muster runs on does not know its name, as
// behind a jump host. Thread safety: stateless functions.
#pragma once

#include <string>
#include <vector>

#include "sys/os.h"

namespace muster {

// IPv4 addresses of the ports that are up, with prefix, without loopback: "10.0.0.11/24". Sorted.
std::vector<std::string> own_addresses();

// The address at which sshd took the connection that process `pid` belongs to, from SSH_CONNECTION in its
// environment or in that of the processes above it, since sudo does not pass it on. "" if none has it, or may
// not be read.
std::string ssh_server_address(const Files& files, int64_t pid);

}  // namespace muster
