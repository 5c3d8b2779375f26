// The state of a run that was active when the controller ended, from its journal. Pure: rows in, values out.
// Thread: any; values only. Never reads a clock.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "controller/run/node_run.h"
#include "controller/run/step_log.h"
#include "controller/store/store.h"

namespace muster {

struct Recovery {
  struct Node {
    bool begun = false;
    NodeRun::Stage stage = NodeRun::Stage::pending;  // or quarantined, not_started: then
    std::string reason;
    bool returning = false;     // or done, if it had returned
    std::string failed_action;  // reason of its return
    TimeMs left = 0;
  };
  StepLog log;
  TimeMs last_sign = 0;          // by the wall clock at that time
  std::set<std::string> proven;  // actions that succeeded
  std::map<std::string, Node> nodes;
  std::map<std::string, std::map<std::string, int>> excused;  // by action and node
  std::map<std::string, std::vector<Json>> results;           // by action, of those with further orders
};
// corrupt: its rows contradict each other.
Result<Recovery> recover(const RunRow& run, const std::vector<JournalRow>& journal);

// Why a run with its last row at that time is not resumed; "": it is. Long after, the cluster may be at work
// again; with a clock that was set back, or a restored database, that is unknown.
std::string abandoned(TimeMs last_sign, TimeMs now, const ExecutorTiming& timing);

// Where this node continues: its state before input::Resume.
void restore(NodeRun& node, const Recovery& recovery, const ExecutorHooks& hooks);

}  // namespace muster
