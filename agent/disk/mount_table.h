// The mounts in /proc/self/mountinfo. A path counts as mounted only if it is itself a mount point.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "sys/os.h"

namespace muster {

struct MountEntry {
  std::string target, fs, source, options;
  std::string device;  // "259:3"
};
// By mount point; if several are on one path, the topmost.
std::map<std::string, MountEntry> all_mounts(const Files& files);
// The topmost mount on exactly this path.
std::optional<MountEntry> find_mount(const Files& files, const std::string& target);
// True if the mount point is mounted read-only, or its file system became read-only after an error.
bool is_read_only(const Files& files, const std::string& target);
// Returns the kernel name of a source: "/dev/md/scratch" -> "md127", "UUID=..." through /dev/disk/by-uuid;
// otherwise the source itself. Only for sources that are mounted or compared; mounts.h finds a
// device that is to be mounted.
std::string kernel_name(const Files& files, const std::string& source);
// True if `entry` is a mount of that device: by the device number, or by name if the file system has a number
// of its own (btrfs).
bool is_on_device(const Files& files, const MountEntry& entry, const std::string& device);
// Also true if the device is used as swap.
bool is_mounted(const Files& files, const std::string& device);

// Normalizes a path as mount and systemd do: "//scratch/" becomes "/scratch"; \040 and the like are decoded.
std::string plain_path(const std::string& path);

}  // namespace muster
