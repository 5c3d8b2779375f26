// Values of /proc/sys: their path, and whether the kernel has the written value, which it prints in a form of
// its own (the ports "3,1-2" as "1-3", 0x1000 as 4096, a vector of which only the beginning was written as a
// whole). Thread: plain functions.
#pragma once

#include <string>

namespace muster::steps {

// "net.ipv4.conf.eth0/100.rp_filter" and "net/ipv4/conf/eth0.100/rp_filter", as accepted by sysctl(8).
std::string sysctl_path(std::string key);

// Whether `have`, as the kernel prints it, is the value that writing `want` gives.
bool sysctl_has(const std::string& key, const std::string& have, const std::string& want);

}  // namespace muster::steps
