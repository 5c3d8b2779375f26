// The files on muster's ESP: kernel, initrd and entry of each root slot, and loader.conf, which names the
// default slot. `esp` is the mounted partition; only files below it are accessed.
//
//   /loader/loader.conf                     exactly loader_conf(slot)
//   /loader/entries/muster-<slot>.conf      the plain entry
//   /loader/entries/muster-<slot>-trial.conf  the same for one boot that is not committed yet
//   /muster/<slot>/{vmlinuz,initrd}
// Thread safety: stateless functions.
#pragma once

#include <cstdint>
#include <string>

#include "agent/image/writer.h"
#include "base/result.h"
#include "sys/os.h"

namespace muster {

inline constexpr const char* kLoaderConf = "/loader/loader.conf";
std::string loader_conf(const std::string& slot);
// Returns the slot that loader.conf names; "" if its content is not exactly what muster writes.
std::string standing_slot(const Files& esp);

std::string entry_name(const std::string& slot);  // "muster-a.conf"
std::string trial_name(const std::string& slot);  // "muster-a-trial.conf"
std::string entry_path(const std::string& file_name);
std::string kernel_path(const std::string& slot);
std::string initrd_path(const std::string& slot);

// Returns the plain entry of the request's slot. invalid: its console or kernel options are invalid.
Result<std::string> loader_entry(const SeedRequest& request);
// Returns the entry for a boot that rolls back after `seconds`. conflict: `entry` has no options line.
Result<std::string> trial_entry(const std::string& entry, int64_t seconds);

// Checks that the files on the ESP boot this slot from its own partition: entry, kernel, and initrd if the
// entry names one. conflict names what is missing.
Status slot_is_startable(const Files& esp, const std::string& slot, const std::string& partition_guid);

// Returns the size of all files in the slot's folder: kernel, initrd, and leftovers of an interrupted copy.
uint64_t slot_bytes(const Files& esp, const std::string& slot);
// Removes those files. Subfolders are left alone.
Status clear_slot_folder(const Files& esp, const std::string& slot);

// Names the other slot in loader.conf. Overwrites only one byte, within one sector, so that a power cut
// leaves either the old or the new file. conflict: its content was not written by muster, or does not name
// `from`; then nothing was written.
Status change_standing(const Files& esp, const std::string& from, const std::string& to);

}  // namespace muster
