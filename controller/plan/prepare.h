// What is to be done with each node of a plan: image or not, which disks, and who is left alone. Pure.
#pragma once

#include "controller/plan/planning.h"

namespace muster {

// Decides for each node, all of which were seen, and renders its steps.
void prepare_all(Planning& p);
// Another machine than the one that was ordered is not installed; the others do not wait for it.
void drop_unlike(Planning& p);
// One disk that several nodes see is selected by one of them only. Nodes outside the plan count as they were
// seen last: their disks may be in use.
void refuse_shared_disks(Planning& p);
// Nodes on which nothing would change take no part.
void drop_unchanged(Planning& p);

}  // namespace muster
