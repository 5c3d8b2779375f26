// AcceptTimes: how long configuration and acceptance of nodes took, looked up in the store's runs: a trial
// boot's time limit must be longer than that. A worker thread reads the long parts. A node's result is cached
// until a later run accepts the node, because the journal of a finished run no longer changes. Thread: the
// reactor's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/alive.h"
#include "controller/bringup/plan_worker.h"
#include "controller/plan/plan.h"
#include "controller/ports/store.h"

namespace muster {

// Returns, by node, the total time of its own actions, each from the start of the attempt that succeeded:
// waiting for other nodes in between does not count. No entry for a node without such actions in the journal,
// or if the run only measured, perhaps with a different profile. `journal` may be without `data`.
std::map<std::string, DurationMs> accept_times(const Plan& plan, const std::vector<JournalRow>& journal);

struct DoneRun {
  Plan plan;
  std::vector<JournalRow> journal;
};

// Finds the same times for nodes that were last accepted in the runs with the given ids. If such a run only
// measured, the newest earlier run that configured and accepted the node counts; the last 50 runs are
// searched. Each run is read once. Pure.
class AcceptTimesSearch {
 public:
  using Accepted = std::map<std::string, int64_t>;  // by node
  struct Open {
    int64_t run = 0;
    std::vector<std::string> nodes = {};
    bool last = false;  // this run was the last to accept one of the nodes
  };

  explicit AcceptTimesSearch(Accepted accepted);

  // nullopt: the search is complete.
  std::optional<Open> next();
  // True if the content of a run of that kind matters, not only its kind.
  static bool matters(const Open& open, PlanKind kind);
  // nullopt: the run cannot be read.
  void judge(const Open& open, const std::optional<DoneRun>& run);

  const Accepted& accepted() const { return accepted_; }
  const std::map<std::string, DurationMs>& found() const { return found_; }
  const std::set<std::string>& unreadable() const { return unreadable_; }  // their last run is unreadable

 private:
  Accepted accepted_;
  std::map<int64_t, std::vector<std::string>> open_;  // nodes, by the run to read next for them
  std::map<std::string, DurationMs> found_;
  std::set<std::string> unreadable_;
};

using RunOf = std::function<std::optional<DoneRun>(int64_t id)>;
std::map<std::string, DurationMs> accept_times(const AcceptTimesSearch::Accepted& accepted,
                                               const RunOf& run_of);

class AcceptTimes {
 public:
  using Accepted = AcceptTimesSearch::Accepted;

  AcceptTimes(Store& store, PlanWorker::Offload offload) : store_(store), offload_(std::move(offload)) {}
  ~AcceptTimes() { alive_.end(); }  // `then` is not called after this
  AcceptTimes(const AcceptTimes&) = delete;
  AcceptTimes& operator=(const AcceptTimes&) = delete;

  // Looks up what is not yet known about these nodes, then calls `then`, possibly before find() returns.
  void find(const Accepted& accepted, std::function<void()> then);
  bool looked_for(const std::string& node, int64_t run) const;
  // 0: unknown.
  DurationMs of(const std::string& node, int64_t run) const;

 private:
  struct Looking {
    AcceptTimesSearch search;
    std::set<int64_t> running;  // running when the search began: their journals were incomplete
    uint64_t number = 0;        // searches are numbered in order of their start
  };
  using Search = std::shared_ptr<Looking>;
  struct Known {
    int64_t run = 0;
    DurationMs took = 0;
    bool readable = true;  // false: a run was unreadable; look up again
    uint64_t found_by = 0;
  };

  void go_on(const Search& looking, const std::function<void()>& then);
  std::optional<PlanKind> kind_of(int64_t run);
  void keep(const Looking& looking);
  const Known* known(const std::string& node, int64_t run) const;

  Store& store_;
  PlanWorker::Offload offload_;
  std::map<std::string, Known> known_;
  uint64_t searches_ = 0;
  Alive alive_;
};

}  // namespace muster
