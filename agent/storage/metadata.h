// Finds the metadata of shared file systems: without it the chunks and objects on all members' disks are
// useless. It is in /state if that exists, so that it survives a re-image. Reads only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sys/os.h"

namespace muster {

std::string moosefs_folder(const Files& files);  // of master, metadata logger and chunk server
bool has_moosefs_metadata(const Files& files);   // a master's image, backup or change logs
// True if a master's metadata is the initial empty image, perhaps with changes after it.
bool moosefs_metadata_is_new(const Files& files);
// Returns when a master's metadata was last written, in seconds since 1970; 0 if there is none.
int64_t moosefs_metadata_written(const Files& files);
// A complete copy of a master's metadata: from a metadata logger, or from this node's time as master before a
// different node took over ("master.retired", numbered from the second on).
struct MooseFsCopy {
  std::string folder;
  std::vector<std::string> files;  // names of the files that a master needs
  uint64_t version = 0;            // of the image and the changes after it: the higher, the later
  int64_t written = 0;             // when any of them was last written, seconds since 1970
};
// Returns the latest copy on this node; none without an image: change logs alone are not enough.
std::optional<MooseFsCopy> latest_moosefs_copy(const Files& files);
// Returns an unused folder name, to which a former master's metadata is moved.
std::string free_retired_folder(const Files& files);
std::string ceph_monitor_folder(const Files& files, const std::string& node);

std::map<std::string, bool> storage_metadata(const Files& files);

}  // namespace muster
