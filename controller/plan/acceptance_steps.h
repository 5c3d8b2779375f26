// The measurements of a plan: each node alone, then the nodes together. Pure functions, no I/O.
#pragma once

#include "controller/plan/planning.h"

namespace muster {

// Appends the measuring actions to the plan, after all actions that the drafts have so far.
void write_acceptance(Planning& p);

}  // namespace muster
