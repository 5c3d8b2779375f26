// Driver `ssh`: for a node that can only be reached through the system that it runs.
//
// Nothing outside of the machine can switch it: state is `unknown`, and on, off and the network boot return
// `invalid` with a message about what is possible instead. To start the RAM system, the executor sends the
// node's own agent an order `kexec` (docs/decisions/0030). muster holds no SSH key for the node: it uses the
// agent that adoption installed (docs/decisions/0003).
#pragma once

#include "controller/ports/power.h"

namespace muster {

PowerDriver in_band_driver();

}  // namespace muster
