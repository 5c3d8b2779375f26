// The name of a system: of this machine, or of a tree below another root.
#pragma once

#include "base/distribution.h"
#include "sys/os.h"

namespace muster {

// All empty if there is no such file.
inline OsRelease os_release(const Files& files) {
  auto text = files.read("/etc/os-release");
  if (!text.ok()) text = files.read("/usr/lib/os-release");
  return parse_os_release(text.value_or(""));
}

}  // namespace muster
