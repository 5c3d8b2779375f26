// TiedProcess: runs programs that the kernel kills when this process ends for any reason: `muster-agent tied
// PID PROGRAM ARGUMENTS...` runs in between, ties itself to process PID and becomes the program. For an agent
// that must leave no process behind; for an agent that is a service, systemd does this. Thread: as for the
// wrapped Process; a program is tied to the thread that runs it.
#pragma once

#include <string>
#include <vector>

#include "sys/os.h"

namespace muster {

class TiedProcess : public Process {
 public:
  // `self`: path of muster-agent.
  explicit TiedProcess(Process& inner, std::string self = "/proc/self/exe")
      : inner_(inner), self_(std::move(self)) {}
  // Runs a program as Process::run() does; not_found if it does not exist.
  Result<Output> run(const Command& command) override;

 private:
  Process& inner_;
  std::string self_;
};

// Runs as the program in between, with the arguments PID PROGRAM ARGUMENTS... Returns only if it could not
// start the program, with the exit status.
int become_tied(const std::vector<std::string>& words);

}  // namespace muster
