// TiedProcess: programs that the kernel kills when this process ends, however that happens: `muster-agent
// tied PID PROGRAM ARGUMENTS...` runs in between, ties itself to process PID and becomes the program. For an
// agent that must leave no process behind; for an agent that is a service, systemd takes care of it. Thread:
// as the Process below; the tie is to the thread that runs the program.
#pragma once

#include <string>
#include <vector>

#include "base/os.h"

namespace muster {

class TiedProcess : public Process {
 public:
  // `self`: path of muster-agent.
  explicit TiedProcess(Process& inner, std::string self = "/proc/self/exe")
      : inner_(inner), self_(std::move(self)) {}
  // As Process: not_found when there is no such program.
  Result<Output> run(const Command& command) override;

 private:
  Process& inner_;
  std::string self_;
};

// The program in between: PID, PROGRAM, ARGUMENTS. Returns only when it could not become that, with the exit
// status.
int become_tied(const std::vector<std::string>& words);

}  // namespace muster
