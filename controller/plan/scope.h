// Which nodes a plan is about: those of the request that may be planned at all. Pure.
#pragma once

#include "controller/plan/planning.h"

namespace muster {

// A draft for each. The others are refused where the request names them, and else left out with a note.
void choose_nodes(Planning& p);

}  // namespace muster
