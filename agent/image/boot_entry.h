// The firmware's boot list, for nodes whose boot order nothing else controls.
//
// On a node with a BMC the firmware's own order decides, and a boot override corrects it. Without a BMC, a
// list that still starts the replaced system, perhaps on a different disk, could not be corrected: so the
// entry "muster" is put first, for the next boot and for later ones. EFI variables in the kernel's form
// (efivarfs). Thread: plain functions.
#pragma once

#include <cstdint>
#include <string>

#include "base/os.h"
#include "base/result.h"

namespace muster {

// An EFI system partition as firmware names it.
struct EspPlace {
  int number = 0;
  uint64_t first_block = 0, blocks = 0;  // of the disk's logical block size
  std::string guid;                      // of the partition
};

// Boot#### "muster" for \EFI\BOOT\BOOTX64.EFI on it: created if missing, first in BootOrder, and BootNext.
// Other entries stay, after it. not_found: this machine was not started by UEFI.
Status start_first(const Files& files, const EspPlace& esp);

}  // namespace muster
