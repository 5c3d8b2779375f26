// The actions of a plan that installs, configures or measures, and its remarks for the operator. Pure.
#pragma once

#include "controller/plan/planning.h"

namespace muster {

// For all drafts, which must be prepared.
void write_actions(Planning& p);

}  // namespace muster
