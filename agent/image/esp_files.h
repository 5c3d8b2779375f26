// What lies on muster's ESP: for each root slot its kernel, initrd and entry, and loader.conf, which names
// the slot that is started. Pure but for the folder: `esp` is the mounted partition.
//
//   /loader/loader.conf                     exactly loader_conf(slot)
//   /loader/entries/muster-<slot>.conf      the plain entry
//   /loader/entries/muster-<slot>-trial.conf  the same for one boot that nobody has committed yet
//   /muster/<slot>/{vmlinuz,initrd}
// Thread: plain functions.
#pragma once

#include <cstdint>
#include <string>

#include "agent/image/writer.h"
#include "base/os.h"
#include "base/result.h"

namespace muster {

inline constexpr const char* kLoaderConf = "/loader/loader.conf";
std::string loader_conf(const std::string& slot);
// The slot that it names; "" where it is not exactly what muster writes.
std::string standing_slot(const Files& esp);

std::string entry_name(const std::string& slot);  // "muster-a.conf"
std::string trial_name(const std::string& slot);  // "muster-a-trial.conf"
std::string entry_path(const std::string& file_name);
std::string kernel_path(const std::string& slot);
std::string initrd_path(const std::string& slot);

// The plain entry of the request's slot. invalid: its console or kernel options are none.
Result<std::string> loader_entry(const SeedRequest& request);
// The same entry for one boot that takes itself back after `seconds`. conflict: it has no options to add to.
Result<std::string> trial_entry(const std::string& entry, int64_t seconds);

// What stands on the ESP starts this slot from its own partition: entry, kernel, and initrd where the entry
// names one. conflict says what is missing.
Status slot_is_startable(const Files& esp, const std::string& slot, const std::string& partition_guid);

// ESP bytes of all files in the slot's folder: of its kernel and initrd, and of a copy that was cut off.
uint64_t slot_bytes(const Files& esp, const std::string& slot);
// Removes those files. Folders in it are left alone.
Status clear_slot_folder(const Files& esp, const std::string& slot);

// Names the other slot in loader.conf: one byte is written over, within one sector, and synced. conflict: its
// content is not muster's own, or it names another slot than `from`; nothing was written then.
Status change_standing(const Files& esp, const std::string& from, const std::string& to);

}  // namespace muster
