// Kills all descendants of this process, however it ends.
//
// Linux notifies a parent about its children only, and a program may leave processes of its own behind. So
// the work is done in a child, and its parent stays as the guard: it adopts orphans below it
// (PR_SET_CHILD_SUBREAPER), and when the child ends, is killed, or hangs at the end, it kills all remaining
// processes. If the guard itself is killed, the child detects that and does the same. If both are killed at
// once, their own children die too (agent/measuring/tied_process.h). Only for a process with a single thread.
#pragma once

#include <functional>
#include <string>

namespace muster {

// Runs `work` in a child and returns its exit status, or 128 + signal if a signal killed it, once no process
// that it or its descendants started is left. Then removes `folder` and the files in it (empty: none).
// SIGHUP, SIGINT and SIGTERM become SIGTERM for the child. A child that has not ended 10 s after such a
// signal, or after the end of standard input, is killed. Only `work` reads standard input.
int run_guarded(const std::string& folder, const std::function<int()>& work);

// Kills all descendants of this process and waits some seconds at most until they are gone: a process in an
// uninterruptible call dies when the call ends.
void end_descendants();

}  // namespace muster
