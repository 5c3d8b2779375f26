// Read-only plans: silent nodes are woken, nodes that were never seen are discovered. Pure.
#pragma once

#include <vector>

#include "controller/plan/planning.h"

namespace muster {

// True when a plan was made that only wakes nodes whose agents are silent; what is to be done with them, and
// with the others, is planned when they answer. One that did not answer in such a run is left alone until a
// request names it.
bool wake(Planning& p);
// True when a discover plan was made: some nodes were never seen. Nodes that a discovery already failed to
// find, or that a person has to switch on for it, do not hold the others: they are looked for when there is
// nothing else to do.
bool discover(Planning& p);
// The plan that discovers these nodes, and does nothing else.
void write_discovery(Planning& p, std::vector<Draft> unseen);

}  // namespace muster
