// Ends this process when another one has ended: a server that was left in the background for an agent must
// not outlive it, however the agent ended. Thread: starts one of its own, which sleeps until then.
#pragma once

#include <sys/types.h>

#include "base/result.h"

namespace muster::kernels {

// `pid`: a running process of any user. not_found: there is no such process.
Status end_with(pid_t pid);

}  // namespace muster::kernels
