// The lab's own musterd: started inside the lab's network namespace, handed the BMC secret, killed and
// restarted on request.
//
// Found as $MUSTER_MUSTERD, beside the muster program, or installed. --lab marks it as a lab's; its
// environment has the address of the package proxy (MUSTER_APT_PROXY), and the kernel arguments of the lab's
// machines (MUSTER_KERNEL_OPTIONS). Log: DIR/musterd.log; socket: DIR/musterd.sock; state: DIR/state. Thread:
// blocking calls of a command-line program.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/lab_dir.h"
#include "lab/lab_spec.h"

namespace muster::lab {

// A virtual machine's timer interrupt comes late when the host is busy. The kernel tests it once while it
// boots, and then panics ("timer doesn't work through Interrupt-remapped IO-APIC"): 23 of 48 boots on a busy
// host, none with this. For the same reason it takes the time-stamp counter for a bad clock, and uses one
// that is slow to read: perftest measures nothing then. Real machines keep both tests. An unclaimed interrupt
// is how the lab makes a kernel panic (lab/boot_faults.h).
inline constexpr const char* kKernelOptions = "no_timer_check tsc=nowatchdog unknown_nmi_panic";
// Of musterd alone, without the prefix that puts it into the lab's network.
std::vector<std::string> controller_arguments(const LabDir& dir, const LabSpec& spec,
                                              const std::string& musterd);
std::map<std::string, std::string> controller_environment(const LabSpec& spec, bool has_proxy);

// `not_found` when musterd is not built or installed. Ok once it answers and has the BMCs' secret.
Status start_controller(const LabDir& dir, const LabSpec& spec, const std::string& space);
// Stops it, with SIGKILL under `kill` (a crash), and starts it again with the same state.
Status restart_controller(const LabDir& dir, bool kill);

}  // namespace muster::lab
