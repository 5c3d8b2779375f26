// Reads which packages are installed, from dpkg's status file and from the journal of an interrupted run.
//
// Never writes. Fails only if /var/lib/dpkg/status cannot be read; a package with an incomplete or broken
// record counts as not installed. Thread safety: stateless functions.
#pragma once

#include <map>
#include <string>

#include "sys/os.h"

namespace muster::steps {

struct InstalledPackage {
  std::string version;
  bool held = false;
  std::map<std::string, std::string> provides;  // virtual package -> its version, "" if it has none
};
using Packages = std::map<std::string, InstalledPackage>;

// Returns the installed packages by name, of any architecture, without those that are half installed or not
// configured according to the status file or the journal.
Result<Packages> installed_packages(const Files& files);

// True if there is a journal, which means that a dpkg run is active or was interrupted.
bool has_journal(const Files& files);

}  // namespace muster::steps
