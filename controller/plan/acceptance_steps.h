// The measurements of a plan: each node alone, then the nodes together. Pure.
#pragma once

#include "controller/plan/planning.h"

namespace muster {

// Appended after everything that the drafts have so far.
void write_acceptance(Planning& p);

}  // namespace muster
