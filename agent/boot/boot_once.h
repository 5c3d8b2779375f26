// Boots into the RAM system once through an entry of the boot loader, for kernels that cannot start another
// one (lockdown, kexec disabled or not built).
//
// The entry `muster-once` is set for the next boot only, and the loader clears this setting before it starts
// the entry: the boot after it always starts the old system. Supported are GRUB as set up by Debian and
// Ubuntu (grub.cfg with next_entry and custom.cfg, and a grubenv that GRUB itself can write: the entry exists
// only if GRUB verified that write in the same boot), and systemd-boot. Written to the loader's partition:
// kernel, initrd and the entry, with a one-time token that only root can read. Of the existing files
// only custom.cfg is changed, by a marked block. Rejected under Secure Boot, since the system to be installed
// is not signed and would not start. Thread: blocking; a worker thread.
#pragma once

#include <string>

#include "base/result.h"
#include "sys/os.h"

namespace muster {

// "grub" or "systemd-boot", whichever supports this; Code::denied says why not. Changes nothing.
Result<std::string> one_time_loader(const Files& files, Process& process);

struct OneTimeBoot {
  std::string kernel, initrd;  // their content
  std::string command_line;
};
// Sets that entry up; Ok only if the setting reads back as written. On failure, everything is undone.
Status arm_boot_once(const Files& files, Process& process, const std::string& loader,
                     const OneTimeBoot& boot);
// True if this system set up a one-time boot and has not undone it.
bool boot_once_armed(const Files& files);
// Makes the next boot a normal one and removes the written files. Does nothing if no such boot is set up.
void forget_boot_once(const Files& files, Process& process);

}  // namespace muster
