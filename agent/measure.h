// measure: the host's end of `muster accept --hosts`. An agent like any other whose controller is the command
// at the other end of standard input and output (agent/pipe_link.h), and which leaves nothing behind.
//
// Started by the script of controller/hosts/bootstrap.h, from a folder made for it. It removes its own file,
// and a file system that was mounted for it, sends hello, examines the host (agent/look_first.h), and takes
// orders until the pipe closes, the command ends it or is silent, or a signal comes. Then every process that
// it started is killed (agent/descendants.h). It carries out `inventory` and measuring checks only. Thread:
// of a process that has one.
#pragma once

#include <map>
#include <string>

namespace muster {

// `options`, of the command line, without their dashes:
//   node     its name in the orders
//   folder   which holds its file, made by the script; both are removed at once
//   mounted  where the script mounted a file system for it, in a name space of its own; unmounted at once
//   place    where that is, for messages
//   how      "root", "sudo" or "user"
//   why      output of sudo, if it was tried
//   nvml     digest of muster-accept-nvml, which the command has; empty: it has none
// Returns the exit status.
int run_measure(const std::map<std::string, std::string>& options);

}  // namespace muster
