// The main program of muster-accept and muster-accept-gpu: runs one kernel, prints its measurement as JSON.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "base/command_line.h"
#include "base/result.h"
#include "kernels/common/kernels.h"

namespace muster::kernels {

// Ends this process when process `pid`, of any user, ends: a server started in the background for an agent
// must not outlive that agent, however the agent ended. Starts a thread, which sleeps until then. Returns
// not_found if there is no such process.
Status end_with(pid_t pid);

// The text of --inject-flip is stored in `flip`.
void add_flip(Verb& kernel, std::string& flip);

// Parses the command line and runs one kernel. `app` has a subcommand per kernel; `run` receives the name of
// the one that was given and the parsed `flip`. Returns the exit status: 2 for bad usage, else exit_status().
using RunKernel = std::function<Measurement(const std::string& kernel, const std::optional<Flip>& flip)>;
int run_program(Verb& app, int argc, char** argv, const std::string& flip, const RunKernel& run);

// Prints the measurement and exits at once, even if other threads are blocked. If several threads call it,
// only the first call has an effect.
[[noreturn]] void end_program(const Measurement& measurement);

}  // namespace muster::kernels
