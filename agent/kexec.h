// Handing over to the RAM system without firmware: for nodes without power control (power driver `ssh`).
//
// prepare_kexec() refuses before any change: if the kernel would not load (Secure Boot, lockdown, kexec
// disabled), the system cannot be shut down in order, or the RAM system could not set up the network. Then it
// fetches kernel and initrd into memory, checks their digests, and loads them into the kernel, which is the
// final check. Nothing is written to a disk. leave_by_kexec() stops the system cleanly, as a reboot does,
// with a unit in place of systemd's own for reboots: `systemctl kexec` itself needs kexec-tools up to systemd
// 255, and without them restarts through the firmware silently. A child process does the loading,
// `muster-agent kexec --stdin`: the command line contains a one-time token, which must not appear in a
// process list. Thread: blocking; a worker thread.
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

// Code::denied: why this system does not allow it; nothing else was checked or done.
Status may_kexec(const Files& files);
// {"network": the arguments it adds, "kernel": version of the running one, "way": "grub, one boot" if the
// boot loader starts it}. denied: neither may_kexec() nor the boot loader (agent/boot_once.h), the network.
// failed, unavailable: may be retried. cancelled, with nothing left loaded.
Result<Json> prepare_kexec(const KexecDeps& deps, const wire::KexecJob& job);
// Starts the loaded kernel once systemd has stopped everything and unmounted what it can. Ok: systemd has
// begun, and this system is about to end. Otherwise nothing is loaded any more.
Status leave_by_kexec(const Files& files, Process& process);
// The unit's part, `muster-agent kexec --now`: NVIDIA's modules are unloaded if possible, remaining mounts
// are written back, for a minute at most, and made read-only, then the loaded kernel starts; if that fails,
// this system restarts through the firmware. Does not return.
[[noreturn]] void start_loaded_kernel(const Files& files);
// Unloads a kernel that must not be started: after the order was withdrawn, and by an agent that starts with
// a kernel loaded by an earlier one, which did not leave. The next `systemctl reboot` of an operator must not
// end in the RAM system.
void forget_kexec(const Files& files, Process& process);

// The child's part: {"kernel", "initrd", "command_line"} or {"unload": true}. denied: the kernel rejects it.
Status load_kexec(const std::string& request);
// The meaning of a kernel error. denied, so that the boot loader is tried: not only "not allowed" but also
// "not possible on this machine" (no room below 4 GiB, an unknown format, an unavailable address): the same
// kernel and file would give the same answer again. failed: a retry may succeed.
Status kexec_refusal(int error);

}  // namespace muster
