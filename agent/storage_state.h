// What of storage is mounted on this node, how full it is, and how its arrays are: said with each request for
// orders (agent/http_link.h), for `muster status`. On the node of MooseFS' master and on Ceph's monitors also
// what the engine says of its own health (agent/storage/health.h).
//
// Cheap: /proc and /sys, statvfs() on local file systems. Of a file system whose server is elsewhere another
// process asks, at most once a minute, under a deadline of 3 s. One that cannot even be killed is left alone,
// and no second one is started beside it, not by the next agent either: it is looked for in /proc. An engine
// is asked by its own program in the same way, under a deadline of 20 s, as that takes seconds to begin. None
// is asked more than a twentieth of the time, so that a slow machine does not live on questions; but whose
// program gave up by itself is asked again after a minute. Who calls waits for all of them together no longer
// than `patience`; what is not there by then comes with the next look, and until then the answer of before
// counts, of a mount with its age. Thread: one, any; the destructor waits for questions under way, which end
// by their deadline.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "agent/steps/disk/mounts.h"
#include "agent/storage/health.h"
#include "base/json.h"
#include "base/os.h"

namespace muster {

class StorageState {
 public:
  // `clock`: milliseconds, by which questions are measured; called by several threads.
  using Clock = std::function<int64_t()>;
  StorageState(const Files& files, Process& process, DurationMs patience = kSecond, Clock clock = steady_ms)
      : files_(files), process_(process), patience_(patience), clock_(std::move(clock)) {}
  ~StorageState();
  StorageState(const StorageState&) = delete;
  StorageState& operator=(const StorageState&) = delete;
  // Engines first: [{engine, ok, health?} or {engine, silent}], health in words where ok is false; then
  // {scheduler: "slurm", state, reason} of this node, where slurmd is installed and Slurm answers; then
  // mounts: [{at, fs, from, size?, used?, array?, health?, ok?, silent?, age?}]: sizes in bytes; array: its
  // level; health in words; ok: false when it is not; silent: its server does not answer; age: seconds since
  // it did, where that is not this question. `seconds`: of a clock that only goes on.
  Json look(int64_t seconds);
  // The same as text that fits into a request: of very many mounts the last ones are left out, and
  // {cut: true} stands in their place.
  std::string text(int64_t seconds);

 private:
  static int64_t steady_ms();
  struct Question {
    std::string of;  // a mount point, or an engine's name
    Command command;
    std::function<Json(const std::string& out)> read;  // what it says; null: that is no answer
  };
  struct Answer {
    int64_t asked = -1, answered = -1, rest = 60;  // seconds
    bool silent = false, busy = false;
    Json said = nullptr;
    std::thread helper;
  };
  void ask(Question question, int64_t seconds);
  void run(const Question& question, int64_t seconds);
  bool still_asks(const Command& command) const;
  static Question of_mount(const std::string& target);
  static Question of_scheduler(const std::string& host);
  static Question of_engine(const HealthQuestion& question);
  Json mount_entry(const MountEntry& mount, int64_t seconds);

  const Files& files_;
  Process& process_;
  DurationMs patience_;
  Clock clock_;
  std::mutex mutex_;
  std::condition_variable done_;
  std::map<std::string, Answer> answers_;  // by what the question is of
};

}  // namespace muster
