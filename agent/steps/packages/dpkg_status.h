// What dpkg says is installed: its status file, and its journal of a run that was cut off.
//
// Reads only. Errors are those of reading /var/lib/dpkg/status; what is missing or broken in a record makes
// that record count as not installed. Thread: plain functions.
#pragma once

#include <map>
#include <string>

#include "base/os.h"

namespace muster::steps {

struct InstalledPackage {
  std::string version;
  bool held = false;
  std::map<std::string, std::string> provides;  // other names of it -> their version, "" without one
};
using Packages = std::map<std::string, InstalledPackage>;

// By name, of whatever architecture. Not in it: what is only half installed or not configured, and what the
// journal says has become so since the status file was written.
Result<Packages> installed_packages(const Files& files);

// Whether there is such a journal: of a run under way, or of one that was interrupted.
bool has_journal(const Files& files);

}  // namespace muster::steps
