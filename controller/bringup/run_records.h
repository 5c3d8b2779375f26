// RunRecords: the content of a run's journal, read in one pass: the record of each action, and by node its
// actions, why it was quarantined, whether it went back to its previous system. Pure; thread: a value.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "controller/plan/plan.h"
#include "controller/run/step_log.h"
#include "controller/store/store.h"

namespace muster {

struct PhaseTime {
  std::string phase;
  TimeMs start = 0, end = 0;     // end 0: not over
  std::string outcome = "done";  // done | failed | running
};
// Why a node went back to its previous system, or is going back.
struct WentBack {
  std::string reason;
  bool there = false;
};

// When its first attempt began; for an action that was given up before that: the time of giving up.
TimeMs began(const ActionRecord& record);

class RunRecords {
 public:
  struct Node {
    std::vector<const Action*> actions = {};  // in order
    std::string reason = {};                  // of its quarantine; "" when it was not
    std::optional<WentBack> back = {};        // none: it did not
    std::string stood_down = {};              // why it was not begun, or was left where it is; "": it was not
  };

  RunRecords() = default;
  // `plan` must outlive it.
  explicit RunRecords(const Plan& plan);
  // The next row of the journal. conflict: it cannot follow the ones before it.
  Status apply(const JournalRow& row);
  static Result<RunRecords> of(const Plan& plan, const std::vector<JournalRow>& journal);

  const Node& node(const std::string& name) const;
  const ActionRecord& record(const std::string& action) const { return log_.of(action); }
  // Of one node, in order of their first action.
  std::vector<PhaseTime> phases(const std::string& node) const;

 private:
  StepLog log_;
  std::map<std::string, Node> nodes_;
};

}  // namespace muster
