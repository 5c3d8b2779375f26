// The name of a system: of this machine, or of a tree below another root.
#pragma once

#include "base/distribution.h"
#include "sys/os.h"

namespace muster {

// All empty if there is no such file.
inline OsRelease os_release(const Files& files) {
  auto file = files.open_text("/etc/os-release");  // often a link, which must not lead out of the tree
  if (!file.ok()) file = files.open_text("/usr/lib/os-release");
  return parse_os_release(file.value_or({}).text);
}

}  // namespace muster
