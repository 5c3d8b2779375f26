// Counts of errors, where they are judged otherwise than speeds. Internal to the acceptance rules. Thread
// safety: stateless functions.
#pragma once

#include <string>

#include "controller/report/verdict.h"

namespace muster {

// True if the profile allows no more than so many and says nothing else: `degraded_above` alone.
bool is_of_counts(const Json& expectation);

// Takes a pass away where the count may be too low (detail.at_least: {METRIC: why}): what was counted proves
// a fault, and what was not counted proves no health. The check is then not looked at.
void hold_open(Check& check, const MeasuredStep& step, const std::string& metric);

}  // namespace muster
