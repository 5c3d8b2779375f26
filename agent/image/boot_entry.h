// The firmware's boot list, for nodes whose boot order is not controlled by a BMC.
//
// On a node with a BMC, the firmware's own order applies, and a boot override corrects it. Without a BMC, a
// list that still starts the replaced system, perhaps on a different disk, could not be corrected, so the
// entry "muster" is put first, for the next boot and for later ones. EFI variables in the kernel's format
// (efivarfs). Thread safety: stateless functions.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "sys/os.h"

namespace muster {

// An EFI system partition as firmware names it.
struct EspPlace {
  int number = 0;
  uint64_t first_block = 0, blocks = 0;  // in units of the disk's logical block size
  std::string guid;                      // of the partition
};

// Creates Boot#### "muster" for \EFI\BOOT\BOOTX64.EFI on that partition if missing, and puts it first in
// BootOrder and in BootNext. Other entries stay in the list after it. not_found: not booted by UEFI.
Status start_first(const Files& files, const EspPlace& esp);

}  // namespace muster
