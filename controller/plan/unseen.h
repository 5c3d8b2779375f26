// Read-only plans: silent nodes are woken, nodes that were never seen are discovered. No I/O.
#pragma once

#include <vector>

#include "controller/plan/planning.h"

namespace muster {

// Makes a plan that only wakes nodes whose agents are silent, and returns true, if there are any. Everything
// else is planned once they report. A node that did not report in such a run is left out until a request
// names it.
bool wake(Planning& p);
// Makes a discover plan, and returns true, if some nodes were never seen. Nodes that a discovery already
// failed to find, or that an operator has to switch on, do not delay the others: they are discovered when
// there is nothing else to do.
bool discover(Planning& p);
// Writes a plan that discovers these nodes and does nothing else.
void write_discovery(Planning& p, std::vector<Draft> unseen);

}  // namespace muster
