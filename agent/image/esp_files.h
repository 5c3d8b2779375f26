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

#include "agent/disk/marker.h"
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

// How kernel and initrd are compared with the slot's record: `digests` reads both from the disk, which takes
// seconds.
enum class Proof { sizes, digests };
// Checks that the ESP boots this slot from its own partition: loader, entry, kernel, and initrd if it has
// one. What `note` (may be null) does not record must at least begin like a kernel or an initrd. conflict
// names what is wrong.
Status slot_is_startable(const Files& esp, const std::string& slot, const std::string& partition_guid,
                         const SlotNote* note, Proof proof);

// So that the next read comes from the disk.
void drop_cached(const Files& files, const std::string& path);

// The folder of the slot's kernel and initrd.
std::string folder_of_slot(const std::string& slot);
// Removes the files in it: kernel, initrd, and leftovers of an interrupted copy. Subfolders are left alone.
Status clear_slot_folder(const Files& esp, const std::string& slot);

// Names the other slot in loader.conf. Overwrites only one byte, within one sector, so that a power cut
// leaves either the old or the new file. conflict: its content was not written by muster, or does not name
// `from`; then nothing was written.
Status change_standing(const Files& esp, const std::string& from, const std::string& to);

}  // namespace muster
