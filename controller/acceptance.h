// Judging acceptance: the executor's hook for `check` actions, and the report of a run. Connects the journal with the
// pure rules of controller/report/. Thread: the reactor's.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "controller/current_spec.h"
#include "controller/plan/plan.h"
#include "controller/report/report.h"
#include "controller/store/store.h"

namespace muster {

class Executor;

// Code::failed with the first reason when what was found or measured on the action's node is not what is declared.
Status judge(CurrentSpec& spec, const Executor& executor, const Action& action, const Json& result);

// The report of a run (0: the newest), settled.
Result<Report> make_report(Store& store, const Executor& executor, int64_t run);

}  // namespace muster
