// Kills all descendants of this process, however it ends.
//
// Linux notifies a parent about its children only, and a program may leave processes of its own behind. So
// the work is done in a child, and its parent stays as the guard: it adopts orphans below it
// (PR_SET_CHILD_SUBREAPER), and when the child ends, is killed, or hangs at the end, it kills all remaining
// processes. If the guard itself is killed, the child detects that and does the same. If both are killed at
// once, their own children die too (TiedProcess). Only for a process with a single thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sys/os.h"

namespace muster {

// Runs `work` in a child and returns its exit status, or 128 + signal if a signal killed it, once no process
// that it or its descendants started is left. Then calls `afterwards`, which no signal interrupts.
// SIGHUP, SIGINT and SIGTERM become SIGTERM for the child. A child that has not ended 10 s after such a
// signal, or after the end of standard input, is killed. Only `work` reads standard input.
int run_guarded(const std::function<int()>& work, const std::function<void()>& afterwards = {});

// Kills all descendants of this process and waits some seconds at most until they are gone: a process in an
// uninterruptible call dies when the call ends.
void end_descendants();

// Runs programs that the kernel kills when this process ends for any reason: `muster-agent tied PID PROGRAM
// ARGUMENTS...` runs in between, ties itself to process PID and becomes the program. For an agent that must
// leave no process behind; for an agent that is a service, systemd does this. Thread: as for the wrapped
// Process; a program is tied to the thread that runs it.
class TiedProcess : public Process {
 public:
  // `self`: path of muster-agent.
  explicit TiedProcess(Process& inner, std::string self = "/proc/self/exe")
      : inner_(inner), self_(std::move(self)) {}
  Result<Output> run(const Command& command) override;

 private:
  Process& inner_;
  std::string self_;
};

// Runs as the program in between, with the arguments PID PROGRAM ARGUMENTS... Returns only if it could not
// start the program, with the exit status.
int become_tied(const std::vector<std::string>& words);

}  // namespace muster
