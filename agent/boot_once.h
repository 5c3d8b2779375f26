// One boot into the RAM system by an entry of the boot loader's, where the running kernel starts no other one
// (lockdown, kexec switched off or not built).
//
// The loader is told to take the entry `muster-once` at the next boot and only then, which it does before it
// starts it: whatever becomes of the RAM system, the boot after it is the old system's. GRUB as Debian and
// Ubuntu set it up (grub.cfg that knows next_entry and custom.cfg, a grubenv that GRUB itself can write; that
// it did is read back in the same boot, or the entry is not there), and systemd-boot. What is written:
// kernel, initrd and the entry, with a one-time token in it that root alone can read, on the partition the
// loader reads; nothing that was there is changed but custom.cfg, by a marked block. Under Secure Boot it
// is refused: the system that would be installed is signed by nobody and would not start. Thread: blocking;
// a worker thread.
#pragma once

#include <string>

#include "base/os.h"
#include "base/result.h"

namespace muster {

// "grub" or "systemd-boot". Code::denied says why neither can; nothing was changed.
Result<std::string> one_time_loader(const Files& files, Process& process);

struct OneTimeBoot {
  std::string kernel, initrd;  // their content
  std::string command_line;
};
// Read back before Ok. Else nothing of it is left.
Status arm_boot_once(const Files& files, Process& process, const std::string& loader,
                     const OneTimeBoot& boot);
// Something was armed by this system, and not taken back.
bool boot_once_armed(const Files& files);
// The next boot is the usual one, and what was written is removed. Nothing to do where nothing was armed.
void forget_boot_once(const Files& files, Process& process);

}  // namespace muster
