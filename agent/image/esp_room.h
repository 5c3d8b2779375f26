// Space on the EFI system partition: how much a slot's kernel and initrd may have, how much is lost, and the
// repair. FAT keeps the clusters of a copy that a power cut interrupted: they are in no file, and stay used
// until fsck.vfat frees them. Thread: blocking.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "sys/os.h"

namespace muster {

// Of a mounted file system, in bytes.
struct Space {
  uint64_t size = 0, free = 0, block = 1;
};
Space space_of(const std::string& folder);

struct EspRoom {
  uint64_t size = 0;   // of the file system
  uint64_t ready = 0;  // for the slot: free, or in its folder
  uint64_t lost = 0;   // in no file

  uint64_t repaired() const { return ready + lost; }
};
EspRoom esp_room(const Files& esp, const std::string& slot, const Space& space);
// Returns the size of all files and folders.
uint64_t used_on(const Files& esp, uint64_t block);
// conflict: that many bytes do not fit.
Status has_room(const EspRoom& room, uint64_t needed);

// Repairs the file system on that device, which must not be mounted anywhere. conflict: it is. not_found:
// fsck.vfat (package dosfstools) is missing.
Status repair_vfat(Process& process, const std::string& device);
// Removes the files to which fsck.vfat moved lost space.
Status remove_salvaged(const Files& esp);

}  // namespace muster
