// The `command` power driver: a program of the operator's switches the machine (a PDU, virsh, wake-on-LAN, a
// provider's API). One call is one run of it: one JSON object on its standard input, one on its standard
// output. The contract, with an example, is docs/drivers.md#command.
//
// Programs are in /etc/muster/power.d (MUSTER_POWER_PROGRAMS: another folder, for tests and labs) and are
// named without a path. One that is writable by users other than root or musterd's own is not run. No shell;
// the environment is ours; killed at the deadline. Like a BMC's answer, its report is not enough: a state
// counts when it was read back. `timeout` if it did not report the result of an order.
#pragma once

#include "base/os.h"
#include "controller/power/power.h"
#include "controller/power/waiter.h"

namespace muster {

std::unique_ptr<Power> make_command_power(PowerTarget target, Waiter waiter, std::string folder,
                                          std::shared_ptr<Process> process);
PowerDriver command_driver();

}  // namespace muster
