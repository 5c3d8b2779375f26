// How long a node's configuration and acceptance took in the run that accepted it: a trial boot's time limit
// must be longer than that. Pure functions, no I/O.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

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
// searched. Each run is read once.
class AcceptTimesSearch {
 public:
  using Accepted = std::map<std::string, int64_t>;  // by node
  struct Open {
    int64_t run = 0;
    std::vector<std::string> nodes = {};
    bool last = false;  // this run was the last to accept one of the nodes
  };

  explicit AcceptTimesSearch(Accepted accepted);

  // Returns the run to read next; nullopt: the search is complete.
  std::optional<Open> next();
  // True if the content of a run of that kind matters, not only its kind.
  static bool matters(const Open& open, PlanKind kind);
  // Evaluates a run; nullopt: it cannot be read.
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

// Does the whole search in one call.
using RunOf = std::function<std::optional<DoneRun>(int64_t id)>;
std::map<std::string, DurationMs> accept_times(const AcceptTimesSearch::Accepted& accepted,
                                               const RunOf& run_of);

}  // namespace muster
