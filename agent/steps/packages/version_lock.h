// Version locks: packages that only work together at one version, such as a driver's user space and its
// kernel module.
//
// A lock covers packages by pattern, including dependencies that are not named. Thread: plain functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace muster::steps {

struct VersionLock {
  std::vector<std::string> packages;  // shell patterns: "libnvidia-*", "libcuda1"
  std::string version;                // shell pattern of Debian's version: "550.163.01-*"
};

// From [{packages: [...], version: "..."}]; invalid for anything else, or an empty lock.
Result<std::vector<VersionLock>> version_locks(const Json& list);
bool is_locked(const std::vector<VersionLock>& locks, const std::string& package);
// The packages (name -> version) outside their lock: "libcuda1 is 560.1-1, but its set requires
// 550.163.01-*"; empty if there are none.
std::vector<std::string> outside_locks(const std::vector<VersionLock>& locks,
                                       const std::map<std::string, std::string>& packages);

// What is installed after the actions of `apt-get --simulate`, without architectures.
std::map<std::string, std::string> after_simulation(std::map<std::string, std::string> installed,
                                                    const std::string& simulation);

}  // namespace muster::steps
