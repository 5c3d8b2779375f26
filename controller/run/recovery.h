// Reconstructs the state of a run that was active when the controller ended, from its journal. Pure
// functions: rows in, values out. Thread safety: stateless functions; never reads a clock.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "controller/ports/store.h"
#include "controller/run/node_run.h"
#include "controller/run/step_log.h"

namespace muster {

struct Recovery {
  struct Node {
    bool begun = false;
    NodeRun::Stage stage = NodeRun::Stage::pending;  // or quarantined, not_started, with `reason`
    std::string reason;
    bool returning = false;     // it was returning, or had returned, to its old system
    std::string failed_action;  // the action whose failure made it return
    TimeMs left = 0;
  };
  StepLog log;
  TimeMs last_sign = 0;             // time of the last row, by the wall clock at that time
  std::set<std::string> succeeded;  // actions that succeeded
  std::map<std::string, Node> nodes;
  std::map<std::string, std::map<std::string, int>> excused;  // by action and node
  std::map<std::string, std::vector<Json>> results;           // by action, for actions with further orders
};
// corrupt: the journal's rows contradict each other.
Result<Recovery> recover(const RunRow& run, const std::vector<JournalRow>& journal);

// Returns why a run whose last row dates from `last_sign` is not resumed; "" if it is. Long after that, the
// cluster may be back at work; if a clock was set back or a database restored, the elapsed time is unknown.
std::string abandoned(TimeMs last_sign, TimeMs now, const ExecutorTiming& timing);

// Where this node continues: its state before input::Resume.
void restore(NodeRun& node, const Recovery& recovery, const ExecutorHooks& hooks);

}  // namespace muster
