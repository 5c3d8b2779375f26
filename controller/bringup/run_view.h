// A run as operators see it, from its plan and its journal: per node the result, times per phase, and the
// reason. Thread: the reactor's (reads the store). Knows nothing of a run that is under way but what its
// journal has.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "controller/plan/plan.h"
#include "controller/store/store.h"

namespace muster {

Json run_row_json(const RunRow& row);
// The plan a run carries out.
Result<Plan> plan_of_run(Store& store, const RunRow& row);

struct PhaseTime {
  std::string phase;
  TimeMs start = 0, end = 0;     // end 0: not over
  std::string outcome = "done";  // done | failed | running
};
// Phases of one node in order of their first action.
std::vector<PhaseTime> phase_times(const Plan& plan, const std::vector<JournalRow>& journal,
                                   const std::string& node);
// Why the node was quarantined in this run; "" when it was not.
std::string quarantine_reason(const std::vector<JournalRow>& journal, const std::string& node);
// Why it was not begun, or was left where it was; "" when it was not.
std::string stood_down(const std::vector<JournalRow>& journal, const std::string& node);
// Why the node went back to the system that it had before, or is on its way there; none: it did not.
struct WentBack {
  std::string reason;
  bool there = false;
};
std::optional<WentBack> went_back(const std::vector<JournalRow>& journal, const std::string& node);

// Of a node: result is accepted, discovered, drained, awake, returned, returning, quarantined, failed,
// unfinished.
// {id, state, kind, started, ended, plan_digest, nodes: [{name, result, reason, ms, phases: [{phase, ms,
// outcome}]}],
//  actions: [{id, node, kind, phase, title, state, attempt, ms, message}]}; run 0 is the newest.
Result<Json> run_view(Store& store, int64_t run);

}  // namespace muster
