// A run as operators see it, from its plan and its journal: per node the result, times per phase, and the
// reason. Thread: the reactor's (reads the store). Knows nothing of a run that is under way but what its
// journal has.
#pragma once

#include <memory>
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

// What a run is shown by. Read on the reactor's thread, and used on any: plan and journal may be large.
struct RunSources {
  RunRow row;
  std::string kind;  // of its plan, as the two below
  int64_t spec_revision = 0;
  std::shared_ptr<const Plan> plan = nullptr;  // null: not parsed yet
  std::string plan_json = {};                  // then; else ""
  std::vector<JournalRow> journal = {};
};
// `plan`: where it is at hand.
Result<RunSources> read_run(Store& store, const RunRow& row, std::shared_ptr<const Plan> plan = nullptr);
// Sets `plan`. Thread: any.
Status parse_plan(RunSources& run);

// Of a node: result is accepted, discovered, drained, awake, returned, returning, quarantined, failed,
// unfinished.
// {id, state, kind, started, ended, plan_digest, nodes: [{name, result, reason, ms, phases: [{phase, ms,
// outcome}]}],
//  actions: [{id, node, kind, phase, title, state, attempt, ms, message}]}; run 0 is the newest.
Result<Json> run_view(Store& store, int64_t run);
Result<Json> run_view(RunSources& run);  // thread: any

}  // namespace muster
