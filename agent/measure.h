// measure: the host's end of `muster accept --hosts`. An agent like any other whose controller is the command
// at the other end of standard input and output (agent/pipe_link.h), and which leaves nothing behind.
//
// Started by the script of controller/hosts/bootstrap.h, from a folder made for it. It removes its own file,
// and a file system that was mounted to hold it, says hello, looks at the host (agent/look_first.h), and
// takes orders until the pipe closes, the command says so or is silent, or a signal comes. Then every process
// that it started is killed (agent/descendants.h). It carries out `inventory` and measuring checks only.
// Thread: of a process that has one.
#pragma once

#include <map>
#include <string>

namespace muster {

// `options`, of the command line, without their dashes:
//   node     its name in the orders
//   folder   which holds its file, made by the script; both are removed at once
//   mounted  where the script mounted a file system for it, in a name space of its own; taken away at once
//   place    where that is, for people
//   how      "root", "sudo" or "user"
//   why      what sudo said, where that was tried
//   nvml     digest of muster-accept-nvml, which the command carries; empty: it has none
// Returns the exit status.
int run_measure(const std::map<std::string, std::string>& options);

}  // namespace muster
