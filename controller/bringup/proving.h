// How long a new system of a node needs to be proven: its configuration and its acceptance, as the run shows
// in which it was accepted. Pure.
#pragma once

#include <string>
#include <vector>

#include "controller/plan/plan.h"
#include "controller/store/store.h"

namespace muster {

// The sum over its own actions, each from the beginning of the attempt that succeeded: what it waited for
// other nodes in between is not counted. 0: the journal shows none; or the run only measured, perhaps with
// another profile.
DurationMs proving_took(const Plan& plan, const std::vector<JournalRow>& journal, const std::string& node);

}  // namespace muster
