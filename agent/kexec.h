// Handing over to the RAM system without firmware: for nodes that nothing can switch (power driver `ssh`).
//
// prepare_kexec() refuses before it touches anything: what the kernel would not load (Secure Boot, lockdown,
// kexec switched off), a system that cannot be left in order, a network the RAM system could not find again.
// Then it fetches kernel and initrd into memory, checks their digests, and has the kernel load them, which is
// its last word on whether it may be. Nothing is written to a disk. leave_by_kexec() stops the system in
// order, as a reboot does, by a unit that stands where systemd's own for reboots stand: `systemctl kexec`
// itself needs kexec-tools up to systemd 255, and without them restarts through the firmware without a word.
// Loading is a child's work, `muster-agent kexec --stdin`: the command line holds a one-time token, which
// belongs in no process list. Thread: blocking; a worker thread.
#pragma once

#include <functional>
#include <string>

#include "base/json.h"
#include "base/os.h"
#include "base/result.h"
#include "base/wire.h"

namespace muster {

struct KexecDeps {
  const Files& files;
  Process& process;
  // A file of the controller's boot server.
  std::function<Result<std::string>(const std::string& base_url, const std::string& path)> fetch;
  std::function<bool()> cancelled;
};

// Code::denied says why this system does not allow it; nothing else was looked at or done.
Status may_kexec(const Files& files);
// {"network": the arguments it adds, "kernel": version of the running one, "way": "grub, one boot" where it
// is not the kernel that starts it}. denied: neither may_kexec() nor the boot loader (agent/boot_once.h), the
// network. failed, unavailable: worth another try. cancelled, with nothing left loaded.
Result<Json> prepare_kexec(const KexecDeps& deps, const wire::KexecJob& job);
// What was loaded is started when systemd has stopped everything and unmounted what it can. Ok: systemd was
// told to, and this system is about to end. Else nothing is loaded any more.
Status leave_by_kexec(const Files& files, Process& process);
// The unit's part, `muster-agent kexec --now`: NVIDIA's modules are unloaded as far as they let go, what is
// mounted still is written back, for a minute at most, and made read-only, then the kernel that was loaded
// runs; through the firmware, into this system again, where that fails. Does not return.
[[noreturn]] void start_loaded_kernel(const Files& files);
// What was loaded and is not to be started is unloaded: after the order was withdrawn, and by an agent that
// starts with a kernel loaded by an earlier one, which did not leave. The next `systemctl reboot` of an
// operator must not end in the RAM system.
void forget_kexec(const Files& files, Process& process);

// The child's part: {"kernel", "initrd", "command_line"} or {"unload": true}. denied: the kernel says no.
Status load_kexec(const std::string& request);
// What an error of the kernel's means. denied, so that the boot loader is tried: not only "this is not
// allowed" but also "not like this on this machine" (no room below 4 GiB, a format it does not know, an
// address it cannot have): the same kernel and file give the same answer when they are tried again.
// failed: another try may do.
Status kexec_refusal(int error);

}  // namespace muster
