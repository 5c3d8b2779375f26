// Decides what to do with each node of a plan: image or not, which disks, and which nodes stay unchanged.
// Pure.
#pragma once

#include "controller/plan/planning.h"

namespace muster {

// Decides for each node, all of which must have been seen, and renders its steps.
void prepare_all(Planning& p);
// A machine with hardware other than declared is not installed; the others do not wait for it.
void drop_unlike(Planning& p);
// A disk that several nodes see may be selected by one of them only. Nodes outside the plan count as last
// seen: their disks may be in use.
void refuse_shared_disks(Planning& p);
// Nodes on which nothing would change are left out.
void drop_unchanged(Planning& p);

}  // namespace muster
