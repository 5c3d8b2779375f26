// Ends this process when a given other process ends: a server started in the background for an agent must not
// outlive that agent, however the agent ended. Threads: starts one, which sleeps until that process ends.
#pragma once

#include <sys/types.h>

#include "base/result.h"

namespace muster::kernels {

// `pid`: a running process of any user. Returns not_found if there is no such process.
Status end_with(pid_t pid);

}  // namespace muster::kernels
