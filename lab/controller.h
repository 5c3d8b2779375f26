// The lab's own musterd: started inside the lab's network namespace, handed the BMC secret, killed and restarted on request.
//
// Found as $MUSTER_MUSTERD, beside the muster program, or installed. Its environment says MUSTER_LAB=1 and where the package
// proxy is (MUSTER_APT_PROXY). Log: DIR/musterd.log; socket: DIR/musterd.sock; state: DIR/state.
// Thread: blocking calls of a command-line program.
#pragma once

#include <string>

#include "base/result.h"
#include "lab/lab_dir.h"
#include "lab/spec.h"

namespace muster::lab {

// `not_found` when musterd is not built or installed. Ok once it answers and knows the BMCs' secret.
Status start_controller(const LabDir& dir, const LabSpec& spec, const std::string& space);
// Ends it, with SIGKILL under `kill` (a crash), and starts it again over the same state.
Status restart_controller(const LabDir& dir, bool kill);

}  // namespace muster::lab
