// Processes that outlive the call that started them, and their exact identity: the PID, the start time (in
// clock ticks since boot) and a word that the command line contains (a path in the lab's folder). All three
// must match, so a process with a reused PID is never signalled. Nothing is ever killed by name. Thread
// safety: free functions without shared state.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace muster::lab {

struct ChildId {
  pid_t pid = 0;
  uint64_t start_ticks = 0;
  std::string mark;
};

struct Spawn {
  std::vector<std::string> argv;  // argv[0] is looked up in PATH
  std::string log;                // stdout and stderr are appended to it
  std::string mark;               // must occur in argv
  std::map<std::string, std::string> env = {};
};
// Starts a process in its own session, without inherited descriptors. Does not wait for it.
Result<ChildId> spawn(const Spawn& spawn);

Status write_pid_file(const std::string& path, const ChildId& id);
Result<ChildId> read_pid_file(const std::string& path);

bool alive(const ChildId& id);  // a zombie is not alive
// Sends SIGTERM, after `grace` SIGKILL, and waits until the process has ended. Ok if it had ended already.
Status terminate(const ChildId& id, DurationMs grace);
// Returns every process whose network namespace has this inode.
std::vector<ChildId> processes_in_namespace(uint64_t netns_inode);

}  // namespace muster::lab
