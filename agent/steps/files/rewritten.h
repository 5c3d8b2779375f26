// Files that another program on the host would rewrite at the next boot, and the files that prevent it:
// without them the declared content would not last. Thread safety: stateless functions.
#pragma once

#include <string>
#include <vector>

#include "agent/steps/files/own_file.h"

namespace muster::steps {

// Returns the files that must exist so that `path` stays as written; empty if nothing would rewrite it.
//   /etc/hosts  cloud-init rewrites it if its configuration or the provider's data (which overrides any file
//               on the host) sets `manage_etc_hosts`. The returned file takes this module off the list
std::vector<OwnFile> keeps_written(const Files& files, const std::string& path);

}  // namespace muster::steps
