// Where the metadata of shared file systems lies, and whether it does: what the chunks and objects on all
// members' disks mean nothing without. In /state where there is one, so that it survives a re-image. Read
// only.
#pragma once

#include <map>
#include <string>

#include "base/os.h"

namespace muster {

std::string moosefs_folder(const Files& files);  // of master, metadata logger and chunk server
bool has_moosefs_metadata(const Files& files);   // a master's: an image of it, a backup, or change logs
std::string ceph_monitor_folder(const Files& files, const std::string& node);

// HardwareFacts::storage_metadata.
std::map<std::string, bool> storage_metadata(const Files& files);

}  // namespace muster
