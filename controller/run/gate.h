// Gate: which action of a plan may begin, by what others did: hard and soft dependencies, and barriers.
//
// A node that left the run delays only those that depend on it hard. The plan outlives its gate. Thread: the
// reactor's. Never reads a clock.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/plan/plan.h"
#include "controller/run/node_run.h"
#include "controller/run/step_log.h"

namespace muster {

class Gate {
 public:
  // The state of a node in the run; null: the run is not about it.
  using StateOf = std::function<const NodeRun*(const std::string& node)>;

  Gate() = default;
  explicit Gate(const Plan& plan);

  // The action's success is durable.
  void prove(const std::string& action) { proven_.insert(action); }
  const Action* find(const std::string& action) const;

  struct Answer {
    bool open = false;
    std::string never = {};  // why it will never open
    Wait wait = {};          // not open yet: the reason, without times
    // Not open yet: the action that it waits for; the first open member where it waits at a barrier.
    const Action* on = nullptr;
    std::optional<size_t> barrier = {};
  };
  // The same answer until an action that it names succeeds, or that action's node changes
  // (controller/run/tally.h).
  Answer ask(const Action& action, const StepLog& log, const StateOf& state_of);
  // Whether ask() would make it wait, computed without the cached barriers and without changing them.
  bool waits(const Action& action, const StateOf& state_of) const;
  // The first member that still must be waited for; null: none, and none will be.
  const Action* first_open(size_t barrier, const StateOf& state_of);

 private:
  bool settled_for(const std::string& action, bool hard, const StateOf& state_of, std::string& never) const;

  std::map<std::string, const Action*> actions_;
  const std::vector<std::vector<std::string>>* barriers_ = nullptr;
  std::set<std::string> proven_;
  std::vector<size_t> passed_;  // of each barrier, how many members need no more waiting
};

}  // namespace muster
