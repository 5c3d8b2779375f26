// What check actions were told to measure and what their agents answered, as the rules of controller/report/
// want it; and how JSON that agents wrote is read. Thread: pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "controller/plan/plan.h"
#include "controller/report/gpu_checks.h"
#include "controller/report/verdict.h"
#include "controller/spec/spec.h"

namespace muster {
namespace told {

// A member, where it is there and of that kind; else "", 0, an empty list.
std::string text_of(const Json& object, const char* key);
int64_t whole_number_of(const Json& object, const char* key);
const Json& list_of(const Json& object, const char* key);

}  // namespace told

// The steps of one check action, with what was told of each; a step without an answer was not run.
std::vector<MeasuredStep> measured_steps(const Action& action, const Json& answered);

// Of a plan's nodes. `spec` null: there is none to be read. Valid as long as `facts` and `spec`.
GpuHosts gpu_hosts(bool simulated, decltype(GpuHosts::facts) facts, const Spec* spec);

}  // namespace muster
