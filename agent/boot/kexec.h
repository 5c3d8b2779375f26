// Handing over to the RAM system without firmware: for nodes without power control (power driver `ssh`).
//
// prepare_kexec() returns an error before any change if the kernel would not load (Secure Boot, lockdown,
// kexec disabled), the system cannot be shut down cleanly, or the RAM system could not set up the network.
// Otherwise it fetches kernel and initrd into memory, checks their digests, and loads them into the kernel,
// which is the final check. Nothing is written to a disk. leave_by_kexec() stops the system cleanly, as a
// reboot does, with a unit in place of systemd's own for reboots: up to systemd 255, `systemctl kexec` needs
// kexec-tools, and without them silently restarts through the firmware. A child process does the loading,
// `muster-agent kexec --stdin`: the command line contains a one-time token, which must not appear in a
// process list. Thread: blocking; a worker thread.
#pragma once

#include <functional>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "base/wire.h"
#include "sys/os.h"

namespace muster {

struct KexecDeps {
  const Files& files;
  Process& process;
  std::function<Result<std::string>(const std::string& base_url, const std::string& path)> fetch;
  std::function<bool()> cancelled;
};

// denied: this system does not allow kexec; the message gives the reason. Nothing else is checked or done.
Status may_kexec(const Files& files);
// Returns {"network": the arguments it adds, "kernel": version of the running kernel, "way": "grub, one boot"
// if the boot loader starts it}. denied: neither may_kexec() nor the boot loader (agent/boot/boot_once.h)
// allows it, or the network does not. failed, unavailable: may be retried. cancelled: nothing is left loaded.
Result<Json> prepare_kexec(const KexecDeps& deps, const wire::KexecJob& job);
// Starts the loaded kernel once systemd has stopped everything and unmounted what it can. Ok: systemd has
// begun, and this system is about to end. On an error, nothing is loaded any more.
Status leave_by_kexec(const Files& files, Process& process);
// The unit's part, `muster-agent kexec --now`: unloads NVIDIA's modules if possible, writes back remaining
// mounts (for a minute at most), makes them read-only, and starts the loaded kernel; if that fails, restarts
// this system through the firmware. Does not return.
[[noreturn]] void start_loaded_kernel(const Files& files);
// Unloads a kernel that must not be started: after the order was withdrawn, or when an agent starts and finds
// a kernel that an earlier agent loaded and did not start. Otherwise the next `systemctl reboot` of an
// operator would end in the RAM system.
void forget_kexec(const Files& files, Process& process);

// Runs in the child: {"kernel", "initrd", "command_line"} or {"unload": true}. denied: the kernel rejects it.
Status load_kexec(const std::string& request);
// Classifies a kernel error. denied, so that the boot loader is tried: "not allowed", and "not possible on
// this machine" (no space below 4 GiB, an unknown format, an unavailable address), since the same kernel and
// file would give the same error again. failed: a retry may succeed.
Status kexec_refusal(int error);

// Hands over from a system that is not a node of muster: one that a provider has just installed, reached over
// SSH (controller/power/provider/provider_install.h). `muster-agent hand-over --stdin` (`ready`) loads the
// kernel: reads a wire::KexecJob as one line of JSON and prints one line; on failure no kernel stays loaded;
// denied: this system does not allow it. `--now` starts the loaded kernel.
Status hand_over(bool ready);
Result<std::string> fetch_from_boot_server(const std::string& base_url, const std::string& path);

}  // namespace muster
