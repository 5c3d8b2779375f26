// Processor packages and physical cores, from the kernel's topology in sysfs. The only place that counts
// them: /proc/cpuinfo names no package on Arm, and `core_id` repeats in every die of a package.
// Thread safety: stateless functions.
#pragma once

#include <set>
#include <string>

#include "sys/os.h"

namespace muster {

// "0/1/27": package, die and core of a logical processor ("cpu12"); "" if it is offline.
std::string core_of(const Files& files, const std::string& cpu);
// "0"; "" if the kernel does not show it.
std::string package_of(const Files& files, const std::string& cpu);
// The packages of all online processors.
std::set<std::string> processor_packages(const Files& files);

}  // namespace muster
