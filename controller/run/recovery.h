// What a journal says of a run that was under way when the controller ended. Pure: rows in, values out.
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
    bool returning = false;     // or done, when it had returned
    std::string failed_action;  // that it goes back for
    TimeMs left = 0;
  };
  StepLog log;
  TimeMs last_sign = 0;          // by the clock as it went last
  std::set<std::string> proven;  // actions that succeeded
  std::map<std::string, Node> nodes;
  std::map<std::string, std::map<std::string, int>> excused;  // by action and by whom
  std::map<std::string, std::vector<Json>> results;           // by action, of those that are followed up
};
// corrupt: its rows contradict each other.
Result<Recovery> recover(const RunRow& run, const std::vector<JournalRow>& journal);

// Why nothing of a run is to be taken up whose last sign is of then; "": it goes on. Long after, the cluster
// may be at work again; by a clock that was set back, or in an older copy of the database, nobody knows.
std::string abandoned(TimeMs last_sign, TimeMs now, const ExecutorTiming& timing);

// Where this node goes on: its state before input::Resume.
void restore(NodeRun& node, const Recovery& recovery, const ExecutorHooks& hooks);

}  // namespace muster
