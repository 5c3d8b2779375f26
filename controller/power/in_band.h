// Driver `ssh`: a node that can only be reached through the system it runs.
//
// Nothing outside of the machine can switch it: state is `unknown`, and on, off and the network boot are
// refused (`invalid`) with what is possible instead. To get into the RAM system the executor orders the
// node's own agent to hand over (order `kexec`, docs/decisions/0030). muster holds no SSH key for it: the
// agent that adoption installed is the way in (docs/decisions/0003).
#pragma once

#include "controller/power/power.h"

namespace muster {

PowerDriver in_band_driver();

}  // namespace muster
