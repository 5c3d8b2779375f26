// The lab's own musterd: started in the lab's network namespace with the BMC secret, restarted on request.
//
// The program is $MUSTER_MUSTERD, else musterd in the folder of the muster program, else the installed one.
// It runs with --lab; its environment has the package proxy's address (MUSTER_APT_PROXY) and the kernel
// arguments of the lab's machines (MUSTER_KERNEL_OPTIONS). Log: DIR/musterd.log; socket: DIR/musterd.sock;
// state: DIR/state. The calls block; for command-line programs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/lab_dir.h"
#include "lab/lab_spec.h"

namespace muster::lab {

// A virtual machine's timer interrupts arrive late if the host is busy. A kernel tests the timer once during
// boot, and panics if it fails ("timer doesn't work through Interrupt-remapped IO-APIC"): 23 of 48 boots on a
// busy host, none with no_timer_check. For the same reason its watchdog marks the TSC as unstable; and an AMD
// processor without constant_tsc, as the emulator's default is, counts as unsynchronized as soon as there are
// two. The kernel then reads the HPET, an exit to the emulator for each time of day, and perftest, which
// compares time of day and TSC, finds no rate. All processors of the emulator read the host's counter: hence
// tsc=reliable. Real machines keep both tests.
// tsc_early_khz: nor can such a kernel measure the counter. One took 571 MHz for 2596 ("PIT calibration
// deviates from HPET"); its clock ran 4.5 times too fast, and munge refused what the others had signed. So
// the rate is given.
// unknown_nmi_panic: the lab injects an NMI to make a kernel panic (lab/boot_faults.h).
// norandmaps: the emulator knows translated code by its virtual address. A process that has its libraries
// elsewhere has them translated again; all at the same addresses, a guest starts four times as many a second.
inline constexpr const char* kKernelOptions = "no_timer_check tsc=reliable unknown_nmi_panic norandmaps";
// Returns musterd's argv, without the prefix that runs it inside the lab's network.
std::vector<std::string> controller_arguments(const LabDir& dir, const LabSpec& spec,
                                              const std::string& musterd);
std::map<std::string, std::string> controller_environment(const LabSpec& spec, bool has_proxy,
                                                          int64_t tsc_khz);

// Returns once musterd responds and has the BMC secret. `not_found`: musterd is neither built nor installed.
Status start_controller(const LabDir& dir, const LabSpec& spec, const std::string& space);
// Stops musterd (`kill`: with SIGKILL, as in a crash), and starts it again with the same state.
Status restart_controller(const LabDir& dir, bool kill);

}  // namespace muster::lab
