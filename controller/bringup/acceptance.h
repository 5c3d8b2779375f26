// Judging acceptance: the executor's hook for `check` actions, and the report of a run. Connects the journal
// with the pure rules of controller/report/. Thread: the reactor's.
#pragma once

#include <optional>

#include "base/json.h"
#include "base/pki.h"
#include "base/result.h"
#include "controller/bringup/current_spec.h"
#include "controller/plan/plan.h"
#include "controller/report/report.h"
#include "controller/run/executor.h"
#include "controller/store/store.h"

namespace muster {

// Code::failed with the first reason when what was found or measured on the action's node alone is not what
// is declared, or when a test of several nodes gave no right result. What needs the other nodes (fleet,
// links, how fast collectives are, and whether all of them miss the same floor) is left to conclude().
Status judge(CurrentSpec& spec, const Executor& executor, const Action& action, const Json& result);

// The first floor that the action's node missed in this result; "": none.
std::string reservation(CurrentSpec& spec, const Executor& executor, const Action& action,
                        const Json& result);

// A test of several nodes that did not pass (the last of `results.front()`'s tries) is followed by rounds of
// the same test in pairs, until the guilty node is known or nothing more can be told. nullopt: there is none,
// or the node failed by itself.
std::optional<FollowUp> follow_up(CurrentSpec& spec, const Executor& executor, const Action& action,
                                  const std::vector<Json>& results);

// The end of a run: the final verdict on every node, and the report, signed, as rows to be written with it.
// Nothing for runs that do not accept (discover).
Conclusion conclude(Store& store, const Executor& executor, const pki::KeyPair& key, const RunRow& run);

// The report of a run (0: the newest), settled: as it was signed, or made now from the journal (then without
// a digest) when the run has not ended or was cancelled.
Result<Report> report_of(Store& store, const Executor& executor, int64_t run);
// The signed text; not_found for a run without one.
Result<std::string> signed_report(Store& store, int64_t run);

}  // namespace muster
