// The actions of a plan that installs, configures or measures, and its notes for the operator. No I/O.
#pragma once

#include "controller/plan/planning.h"

namespace muster {

// Writes the actions of all drafts. prepare_all() must have run.
void write_actions(Planning& p);

}  // namespace muster
