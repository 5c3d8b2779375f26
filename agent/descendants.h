// What this process started, and what that started: killed to the last one, whatever happens to this process.
//
// Linux tells a parent of its children only, and a program may leave processes of its own behind. So the work
// is done in a child, whose parent stays behind as the guard: it takes in whatever loses its parent below it
// (PR_SET_CHILD_SUBREAPER), and when the child ends, is killed, or hangs at the end, kills all that is left.
// A guard that is killed itself is noticed by its child, which then does the same. Where both are killed at
// once their own children die too (agent/tied_process.h). Thread: of a process that has one.
#pragma once

#include <functional>
#include <string>

namespace muster {

// Runs `work` in a child and returns its exit status, 128 + signal when killed by one, when no process is
// left that it or its descendants started. `folder` is removed then, with the files in it; empty: there is
// none. SIGHUP, SIGINT and SIGTERM become SIGTERM for the child. A child that has not ended 10 s after one of
// them, or after the end of standard input, is killed. `work` is the only thing that reads standard input.
int run_guarded(const std::string& folder, const std::function<int()>& work);

// Kills all descendants of this process and waits until they are gone, at most some seconds: one in an
// uninterruptible call dies when that ends.
void end_descendants();

}  // namespace muster
