// The `command` power driver: a program supplied by the operator switches the machine (a PDU, virsh,
// wake-on-LAN, a provider's API). Each call runs the program once, with one JSON object on its standard input
// and one on its standard output. docs/drivers.md#command describes the contract, with an example.
//
// Programs are in /etc/muster/power.d (MUSTER_POWER_PROGRAMS: another folder, for tests and labs) and are
// named without a path. A program that any user but root and musterd's own can write to is not run. It runs
// without a shell, in a fixed environment, and is killed at the deadline. As with a BMC, a state counts only
// after it was read back. `timeout`: the program did not report the result of an order.
#pragma once

#include "controller/ports/power.h"
#include "controller/power/waiter.h"
#include "sys/os.h"

namespace muster {

std::unique_ptr<Power> make_command_power(PowerTarget target, Waiter waiter, std::string folder,
                                          std::shared_ptr<Process> process);
PowerDriver command_driver();

}  // namespace muster
