// A run as shown to operators, from its plan and its journal: per node the result, times per phase, and the
// reason. Thread: that of the archive. For an active run it uses only the journal.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "controller/bringup/run_records.h"
#include "controller/plan/plan.h"
#include "controller/ports/store.h"

namespace muster {

Json run_row_json(const RunRow& row);
Result<Plan> plan_of_run(RunArchive& archive, const RunRow& row);

// The data for views and reports of a run. For a large cluster reading it takes seconds.
struct RunSources {
  RunRow row;
  std::shared_ptr<const Plan> plan;
  std::vector<JournalRow> journal;
};
enum class RunRows { all, turns };  // RunArchive::journal, or ::journal_turns, enough for run_view
// `plan`: the run's plan, if already loaded.
Result<RunSources> read_run(RunArchive& archive, const RunRow& row, RunRows rows,
                            std::shared_ptr<const Plan> plan = nullptr);

// A node's `result` is accepted, discovered, drained, awake, returned, returning, quarantined, failed or
// unfinished; degraded and looked_at (no load ran on it) come from the run's report. {id, state, kind,
// started, ended, plan_digest, nodes: [{name, result, reason, ms, phases: [{phase, ms, outcome}]}], actions:
// [{id, node, kind, phase, title, state, attempt, ms, message}]}; run 0 is the newest.
Result<Json> run_view(RunArchive& archive, int64_t run);
Result<Json> run_view(const RunSources& run);

// is_shown() is false for reserve actions that were not needed.
Json run_head_json(const RunRow& row, const Plan& plan);
Json run_node_json(const Plan& plan, const RunRecords& records, const std::string& name);
bool is_shown(const Action& action, const RunRecords& records);
Json run_action_json(const Action& action, const RunRecords& records);

}  // namespace muster
