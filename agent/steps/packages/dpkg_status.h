// The installed packages according to dpkg: its status file, and its journal of an interrupted run.
//
// Reads only. Errors are those of reading /var/lib/dpkg/status; an incomplete or broken record counts as not
// installed. Thread: plain functions.
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

// By name, of any architecture. Without packages that are half installed or not configured, or became so
// since according to the journal.
Result<Packages> installed_packages(const Files& files);

// Whether there is such a journal: of an active or interrupted run.
bool has_journal(const Files& files);

}  // namespace muster::steps
