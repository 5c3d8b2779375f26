// The storage mounted on this node, its use, and the state of its arrays: sent with each request for orders
// (agent/link/http_link.h), for `muster status`. On the nodes of a MooseFS master and of Ceph monitors, also
// the health that the engine reports (agent/storage/health.h).
//
// Cheap: reads /proc and /sys, and calls statvfs() for local file systems. A file system of a remote server
// is checked by a separate process, at most once a minute, with a timeout of 3 s. If that process cannot be
// killed, no second one is started, not even by the next agent, which finds it in /proc. An engine is queried
// through its own program in the same way, with a timeout of 60 s, because it takes seconds to start. A query
// may run for at most a twentieth of the time, to limit the load on a slow machine; after a program that gave
// up by itself, the next query follows after a minute. A caller waits at most `patience` for all queries;
// later answers are returned by the next call, and until then the previous answer is used (with its age if it
// is for a mount). Thread: any one; the destructor waits for pending queries, which end at their timeout.
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
#include "sys/os.h"

namespace muster {

class StorageState {
 public:
  // `clock`: milliseconds, for the timing of queries; called by several threads.
  using Clock = std::function<int64_t()>;
  StorageState(const Files& files, Process& process, DurationMs patience = kSecond, Clock clock = steady_ms)
      : files_(files), process_(process), patience_(patience), clock_(std::move(clock)) {}
  ~StorageState();
  StorageState(const StorageState&) = delete;
  StorageState& operator=(const StorageState&) = delete;
  // Returns a list. Engines first: [{engine, ok, health?} or {engine, silent}], health as text if ok is
  // false; then {scheduler: "slurm", state?, reason?, user?, since?, silent?} of this node, where slurmd is
  // installed (slurm::NodeLine): if silent, Slurm does not answer, and the state is the last known; then
  // mounts: [{at, fs, from, size?, used?, array?, health?, ok?, silent?, age?}]: sizes in bytes; array: its
  // RAID level; ok: false if unhealthy; silent: its server does not answer; age: seconds since the server
  // last answered, if not now.
  // `seconds`: time of a monotonic clock.
  Json look(int64_t seconds);
  // The same as text that fits into a request: of very many mounts, the last become {cut: true}.
  std::string text(int64_t seconds);

 private:
  static int64_t steady_ms();
  struct Question {
    std::string of;  // a mount point, an engine, or "slurm"
    Command command;
    std::function<Json(const std::string& out)> read;  // parses its output; null: invalid
  };
  struct Answer {
    int64_t queried = -1, answered = -1, rest = 60;  // seconds
    bool silent = false, busy = false;
    Json said = nullptr;
    std::thread helper;
  };
  void query(Question question, int64_t seconds);
  void run(const Question& question, int64_t seconds);
  bool still_querying(const Command& command) const;
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
  std::map<std::string, Answer> answers_;  // by subject of the query
};

}  // namespace muster
