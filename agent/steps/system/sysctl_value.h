// Kernel parameters in /proc/sys: their path, and whether the current value equals a written one, although
// the kernel may print it differently (the ports "3,1-2" as "1-3", 0x1000 as 4096, a whole vector although
// only its first elements were written). Thread safety: stateless functions.
#pragma once

#include <string>

namespace muster::steps {

// Path of a sysctl(8) key: "net.ipv4.conf.eth0/100.rp_filter" or "net/ipv4/conf/eth0.100/rp_filter".
std::string sysctl_path(std::string key);

// True if `have`, as the kernel prints it, is the value that results from writing `want`.
bool sysctl_has(const std::string& key, const std::string& have, const std::string& want);

}  // namespace muster::steps
