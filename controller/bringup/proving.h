// How long a new system of a node needs to be proven: its configuration and its acceptance, as the run shows
// in which it was accepted. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/plan/plan.h"
#include "controller/store/store.h"

namespace muster {

// By node, the sum over its own actions, each from the beginning of the attempt that succeeded: what it
// waited for other nodes in between is not counted. Nothing of a node of which the journal shows none; or
// where the run only measured, perhaps with another profile. `journal` may be without `data`.
std::map<std::string, DurationMs> proving_times(const Plan& plan, const std::vector<JournalRow>& journal);

}  // namespace muster
