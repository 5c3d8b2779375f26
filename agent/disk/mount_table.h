// What is mounted, from /proc/self/mountinfo. A path counts as mounted only if it is itself a mount point.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/os.h"

namespace muster {

struct MountEntry {
  std::string target, fs, source, options;
  std::string device;  // "259:3"
};
// All of them by mount point; if several are on one path, the topmost.
std::map<std::string, MountEntry> all_mounts(const Files& files);
// The topmost mount on exactly this path.
std::optional<MountEntry> find_mount(const Files& files, const std::string& target);
// Kernel name that a source resolves to: "/dev/md/scratch" -> "md127", "UUID=..." -> through
// /dev/disk/by-uuid; itself otherwise. Only for what is mounted or compared: a device to be mounted is found
// by selected_device.h.
std::string kernel_name(const Files& files, const std::string& source);
// Whether this is a mount of that device: by its number, or by its name if the file system has a number of
// its own (btrfs).
bool is_on_device(const Files& files, const MountEntry& entry, const std::string& device);
// Whether it is mounted anywhere, or used as swap.
bool is_mounted(const Files& files, const std::string& device);

// A path as mount and systemd read it: "//scratch/" is "/scratch"; \040 and so on are read.
std::string plain_path(const std::string& path);

}  // namespace muster
