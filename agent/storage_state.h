// What of storage is mounted on this node, how full it is, and how its arrays are: said with each request for
// orders (agent/http_link.h), for `muster status`.
//
// Cheap: /proc and /sys, statvfs() on local file systems. Of a file system whose server is elsewhere another
// process asks, under a deadline of 3 s, at most once a minute: a server that is gone would hold up whoever
// asks, and here that is the agent. Thread: one, any.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/json.h"
#include "base/os.h"

namespace muster {

class StorageState {
 public:
  StorageState(const Files& files, Process& process) : files_(files), process_(process) {}
  // [{at, fs, from, size?, used?, array?, health?, ok?, silent?}]: sizes in bytes; array: level; health in
  // words; ok: false when it is not; silent: its server does not answer. `seconds`: of a clock that only goes
  // on.
  Json look(int64_t seconds);
  // The same as text that fits into a request: of very many mounts the last ones are left out.
  std::string text(int64_t seconds);

 private:
  struct Answer {
    int64_t asked = -1;
    uint64_t size = 0, used = 0;
    bool silent = false;
  };
  const Answer& ask(const std::string& target, int64_t seconds);

  const Files& files_;
  Process& process_;
  std::map<std::string, Answer> answers_;  // of servers, by mount point
};

}  // namespace muster
