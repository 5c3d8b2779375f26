// Gate: decides which action of a plan may begin, depending on what other actions have done: hard and soft
// dependencies, and barriers. A node that left the run delays only nodes that depend on it hard. The plan
// must outlive its gate. Thread: the reactor's. Never reads a clock.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/names.h"
#include "controller/plan/plan.h"
#include "controller/run/node_run.h"
#include "controller/run/step_log.h"

namespace muster {

class Gate {
 public:
  // Null if the run does not include the node.
  using StateOf = std::function<const NodeRun*(const NodeName& node)>;

  Gate() = default;
  explicit Gate(const Plan& plan);

  // Records that the action's success is durable.
  void succeeded(const std::string& action) { succeeded_.insert(action); }
  const Action* find(const std::string& action) const;

  struct Answer {
    bool open = false;
    std::string never = {};  // why it will never open
    Wait wait = {};          // not open yet: the reason, without times
    // If not open yet: the action that it waits for; at a barrier, the barrier's first open member.
    const Action* on = nullptr;
    std::optional<size_t> barrier = {};
  };
  // Returns whether the action may begin. The answer stays the same until an action that it names succeeds or
  // the node of that action changes (controller/run/progress.h).
  Answer check(const Action& action, const StepLog& log, const StateOf& state_of);
  // True if check() would make it wait; computed without the cached barriers and without changing them.
  bool waits(const Action& action, const StateOf& state_of) const;
  // Null: no member must be waited for, now or later.
  const Action* first_open(size_t barrier, const StateOf& state_of);

 private:
  bool settled_for(const std::string& action, bool hard, const StateOf& state_of, std::string& never) const;

  std::map<std::string, const Action*> actions_;
  const std::vector<std::vector<std::string>>* barriers_ = nullptr;
  std::set<std::string> succeeded_;
  std::vector<size_t> passed_;  // per barrier: how many members are settled
};

}  // namespace muster
