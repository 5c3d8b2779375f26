// One boot into the RAM system by an entry of the boot loader, if the running kernel cannot start a different
// one (lockdown, kexec disabled or not built).
//
// The entry `muster-once` is set for the next boot only, and the loader clears that before it starts the
// entry: the boot after it always starts the old system. Supported are GRUB as Debian and Ubuntu set it up
// (grub.cfg with next_entry and custom.cfg, a grubenv that GRUB itself can write; the write is verified in
// the same boot, or the entry does not appear), and systemd-boot. What is written: kernel, initrd and the
// entry, with a one-time token in it that only root can read, on the partition the loader reads; of existing
// files only custom.cfg is changed, by a marked block. Refused under Secure Boot: the system to be installed
// is not signed and would not start. Thread: blocking; a worker thread.
#pragma once

#include <string>

#include "base/os.h"
#include "base/result.h"

namespace muster {

// "grub" or "systemd-boot". Code::denied gives the reason for both; nothing was changed.
Result<std::string> one_time_loader(const Files& files, Process& process);

struct OneTimeBoot {
  std::string kernel, initrd;  // their content
  std::string command_line;
};
// Read back before Ok. On failure nothing is left.
Status arm_boot_once(const Files& files, Process& process, const std::string& loader,
                     const OneTimeBoot& boot);
// This system armed a boot and did not undo it.
bool boot_once_armed(const Files& files);
// Makes the next boot a normal one, and removes the written files. Does nothing if nothing was armed.
void forget_boot_once(const Files& files, Process& process);

}  // namespace muster
