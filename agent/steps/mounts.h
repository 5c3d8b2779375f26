// What is mounted, from /proc/self/mountinfo. A path counts as mounted only when it is itself a mount point.
#pragma once

#include <optional>
#include <string>

#include "base/os.h"

namespace muster::steps {

struct MountEntry {
  std::string target, fs, source, options;
  std::string device;  // "259:3"
};
// The topmost mount on exactly this path.
std::optional<MountEntry> find_mount(const Files& files, const std::string& target);
// Kernel name a source stands for: "/dev/md/scratch" -> "md127", "LABEL=scratch" -> through
// /dev/disk/by-label; itself otherwise.
std::string kernel_name(const Files& files, const std::string& source);

}  // namespace muster::steps
