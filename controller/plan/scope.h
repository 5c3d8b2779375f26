// Chooses the nodes of a plan: those of the request that may be planned. No I/O.
#pragma once

#include "controller/plan/planning.h"

namespace muster {

// Makes a draft for each. The others are refused if the request names them, otherwise left out with a note.
void choose_nodes(Planning& p);

}  // namespace muster
