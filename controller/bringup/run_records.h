// RunRecords: the content of a run's journal, read in one pass: the record of each action, and for each node
// its actions, why it was quarantined, and whether it went back to its previous system. No I/O.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "controller/plan/plan.h"
#include "controller/ports/store.h"
#include "controller/run/node_run.h"
#include "controller/run/step_log.h"

namespace muster {

struct PhaseTime {
  std::string phase;
  TimeMs start = 0, end = 0;     // end 0: not over
  std::string outcome = "done";  // done | failed | running
};
struct WentBack {
  std::string reason;
  bool there = false;
};

// Returns when an action's first attempt began; if it was abandoned before that, when it was abandoned.
TimeMs began(const ActionRecord& record);

class RunRecords {
 public:
  struct Node {
    std::vector<const Action*> actions = {};  // in order
    std::string reason = {};                  // for its quarantine; "" if it was not quarantined
    std::optional<WentBack> back = {};        // nullopt: it did not go back
    std::string stood_down = {};              // why the run skipped or did not change the node, else ""
  };

  RunRecords() = default;
  // `plan` must outlive it.
  explicit RunRecords(const Plan& plan);
  // conflict: the row cannot follow those before it.
  Status apply(const JournalRow& row);
  static Result<RunRecords> of(const Plan& plan, const std::vector<JournalRow>& journal);

  const Node& node(const std::string& name) const;
  const ActionRecord& record(const std::string& action) const { return log_.of(action); }
  bool kept_by_jobs(const Node& node) const { return muster::kept_by_jobs(node.actions, log_); }
  // In order of their first action.
  std::vector<PhaseTime> phases(const std::string& node) const;

 private:
  StepLog log_;
  std::map<std::string, Node> nodes_;
};

}  // namespace muster
