// Looks at the machine that musterd runs on: what controller/plan/own_machine.h knows it by.
#pragma once

#include "base/os.h"
#include "controller/plan/own_machine.h"

namespace muster {

// `sys` is the folder of sysfs, `proc` that of procfs. What cannot be read is left empty. Ports without a
// device of their own (bridges, taps, containers' ends) are left out: their addresses are made up, and may
// be another machine's. So may those of ports on USB and of virtual functions (base/port_identity.h).
OwnMachine read_own_machine(const std::string& sys, const std::string& proc = "/proc");

}  // namespace muster
