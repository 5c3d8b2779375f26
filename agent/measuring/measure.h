// measure: the host's end of `muster accept --hosts`. An ordinary agent whose controller is the command at
// the other end of standard input and output (agent/measuring/pipe_link.h), and which leaves nothing behind.
//
// Started by the script of controller/hosts/bootstrap.h, from a folder made for it. It removes its own file
// and unmounts a file system that was mounted for it, sends hello, examines the host
// (agent/measuring/look_first.h), and takes orders until the pipe closes, the command ends it or stops
// sending, or a signal arrives. Then every process that it started is killed (agent/measuring/descendants.h).
// It carries out `inventory` and measuring checks only. Only for a process with a single thread.
#pragma once

#include <map>
#include <string>

namespace muster {

// Runs the agent. `options` are those of the command line, without their dashes:
//   node     name of this host in the orders
//   folder   folder with the program file, made by the script; both are removed at once
//   mounted  where the script mounted a file system for it, in its own mount namespace; unmounted at once
//   place    path of that folder or mount, for messages
//   how      "root", "sudo" or "user"
//   why      output of sudo, if it was tried
//   session  of the command, which puts load on the host: this agent takes the lock of measurements
//            (agent/measuring/host_claim.h). "none": no load, no lock
//   nvml     digest of muster-accept-nvml, which the command has; empty: it has none
// Returns the exit status.
int run_measure(const std::map<std::string, std::string>& options);

}  // namespace muster
