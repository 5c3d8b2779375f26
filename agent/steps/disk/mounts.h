// What is mounted, from /proc/self/mountinfo. A path counts as mounted only when it is itself a mount point.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "agent/steps/step_modules.h"
#include "base/os.h"

namespace muster::steps {

struct MountEntry {
  std::string target, fs, source, options;
  std::string device;  // "259:3"
};
// All of them by mount point; of several on one path the topmost.
std::map<std::string, MountEntry> all_mounts(const Files& files);
// The topmost mount on exactly this path.
std::optional<MountEntry> find_mount(const Files& files, const std::string& target);
// Nobody gets rights out of a file that somebody else put there.
inline constexpr const char* kSafeFlags = "nosuid,nodev";
// Which of nosuid, nodev and noexec are in `options` and not in force on the mount at `target`, in words; ""
// when none.
std::string lacking_flags(const Files& files, const std::string& target, const std::string& options);
// Kernel name a source stands for: "/dev/md/scratch" -> "md127", "LABEL=scratch" -> through
// /dev/disk/by-label; itself otherwise.
std::string kernel_name(const Files& files, const std::string& source);

// Puts those into force; what uses the mount goes on.
Status set_flags(StepContext& context, const std::string& target, const std::string& options);

}  // namespace muster::steps
