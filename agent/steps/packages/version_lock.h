// Version locks: packages that must all have the same version, such as a driver's user space and its kernel
// module.
//
// A lock selects packages by pattern, so it also covers dependencies. Thread safety: stateless functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace muster::steps {

struct VersionLock {
  std::vector<std::string> packages;  // shell patterns: "libnvidia-*", "libcuda1"
  std::string version;                // shell pattern of the Debian version: "550.163.01-*"
};

// Parses [{packages: [...], version: "..."}]; invalid for anything else, or for an empty lock.
Result<std::vector<VersionLock>> version_locks(const Json& list);
bool is_locked(const std::vector<VersionLock>& locks, const std::string& package);
// Returns a message for each package (name -> version) that violates its lock: "libcuda1 is 560.1-1, but its
// set requires 550.163.01-*".
std::vector<std::string> outside_locks(const std::vector<VersionLock>& locks,
                                       const std::map<std::string, std::string>& packages);

// Returns the packages (name without architecture -> version) after the actions of `apt-get --simulate`.
std::map<std::string, std::string> after_simulation(std::map<std::string, std::string> installed,
                                                    const std::string& simulation);

}  // namespace muster::steps
