// Where the metadata of shared file systems lies, and whether it does: what the chunks and objects on all
// members' disks mean nothing without. In /state where there is one, so that it survives a re-image. Read
// only.
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
// What there is of a master's is the empty image it was begun with, and perhaps changes behind that.
bool moosefs_metadata_is_new(const Files& files);
// When any of it was last, seconds since 1970; 0 without any.
int64_t moosefs_metadata_written(const Files& files);
// A whole copy of a master's metadata: what a metadata logger has of it, or what this node was master with
// before another one took over ("master.retired", numbered from the second on).
struct MooseFsCopy {
  std::string folder;
  std::vector<std::string> files;  // names, of those a master needs
  uint64_t version = 0;            // of the image and the changes behind it: the higher, the later
  int64_t written = 0;             // when any of them was last, seconds since 1970
};
// The latest of those that are here; none without an image of the metadata, for change logs alone are none.
std::optional<MooseFsCopy> latest_moosefs_copy(const Files& files);
// Where the metadata of a former master is put aside: a name that is free.
std::string free_retired_folder(const Files& files);
std::string ceph_monitor_folder(const Files& files, const std::string& node);

// HardwareFacts::storage_metadata.
std::map<std::string, bool> storage_metadata(const Files& files);

}  // namespace muster
