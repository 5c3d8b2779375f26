// What of storage is mounted on this node, how full it is, and how its arrays are: said with each request for
// orders (agent/http_link.h), for `muster status`.
//
// Cheap: /proc and /sys, statvfs() on local file systems. Of a file system whose server is elsewhere another
// process asks, at most once a minute, under a deadline of 3 s. One that cannot even be killed is left alone,
// and no second one is started beside it, not by the next agent either: it is looked for in /proc. Who calls
// waits for all of them together no longer than `patience`; what is not there by then comes with the next
// look, and until then the answer of before counts, with its age. Thread: one, any; the destructor waits for
// questions under way, which end by their deadline.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "base/json.h"
#include "base/os.h"

namespace muster {

class StorageState {
 public:
  StorageState(const Files& files, Process& process, DurationMs patience = kSecond)
      : files_(files), process_(process), patience_(patience) {}
  ~StorageState();
  StorageState(const StorageState&) = delete;
  StorageState& operator=(const StorageState&) = delete;
  // [{at, fs, from, size?, used?, array?, health?, ok?, silent?, age?}]: sizes in bytes; array: level; health
  // in words; ok: false when it is not; silent: its server does not answer; age: seconds since it did, where
  // that is not this question. `seconds`: of a clock that only goes on.
  Json look(int64_t seconds);
  // The same as text that fits into a request: of very many mounts the last ones are left out.
  std::string text(int64_t seconds);

 private:
  struct Answer {
    int64_t asked = -1, answered = -1;
    uint64_t size = 0, used = 0;
    bool silent = false, busy = false;
    std::thread helper;
  };
  void ask(const std::string& target, int64_t seconds);
  void run(const std::string& target, int64_t seconds);
  bool still_asks(const std::string& target) const;

  const Files& files_;
  Process& process_;
  DurationMs patience_;
  std::mutex mutex_;
  std::condition_variable done_;
  std::map<std::string, Answer> answers_;  // of servers, by mount point
};

}  // namespace muster
