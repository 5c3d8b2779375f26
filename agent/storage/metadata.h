// Where the metadata of shared file systems is, and whether it exists: without it the chunks and objects on
// all members' disks are useless. In /state where there is one, so that it survives a re-image. Read only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/os.h"

namespace muster {

std::string moosefs_folder(const Files& files);  // of master, metadata logger and chunk server
bool has_moosefs_metadata(const Files& files);   // a master's: an image of it, a backup, or change logs
// A master's metadata consists of the initial empty image, and perhaps changes after it.
bool moosefs_metadata_is_new(const Files& files);
// When any of it was last written, seconds since 1970; 0 without any.
int64_t moosefs_metadata_written(const Files& files);
// A complete copy of a master's metadata: from a metadata logger, or from this node's time as master before a
// different node took over ("master.retired", numbered from the second on).
struct MooseFsCopy {
  std::string folder;
  std::vector<std::string> files;  // names of the files that a master needs
  uint64_t version = 0;            // of the image and the changes after it: the higher, the later
  int64_t written = 0;             // when any of them was last written, seconds since 1970
};
// The latest one on this node; none without an image of the metadata, since change logs alone are not enough.
std::optional<MooseFsCopy> latest_moosefs_copy(const Files& files);
// Where the metadata of a former master is moved aside: an unused name.
std::string free_retired_folder(const Files& files);
std::string ceph_monitor_folder(const Files& files, const std::string& node);

// HardwareFacts::storage_metadata.
std::map<std::string, bool> storage_metadata(const Files& files);

}  // namespace muster
