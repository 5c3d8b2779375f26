// Files that another program of the host rewrites at its next start, and what prevents that: a file with the
// declared content does not hold while a boot would replace it. Thread: plain functions over Files.
#pragma once

#include <string>
#include <vector>

#include "agent/steps/files/own_file.h"

namespace muster::steps {

// What must exist beside `path` so that it stays as written; empty if nothing on this host rewrites it.
//   /etc/hosts  cloud-init, with `manage_etc_hosts` in its configuration or in what the provider gives the
//               machine (which counts more than any file of the host): its module is removed from the list
std::vector<OwnFile> keeps_written(const Files& files, const std::string& path);

}  // namespace muster::steps
