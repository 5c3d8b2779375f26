// Decides for each node of a plan whether it is imaged, which disks it uses, and whether anything changes. No
// I/O.
#pragma once

#include "controller/plan/planning.h"

namespace muster {

// Decides this for each node and renders its steps. All nodes must have been seen.
void prepare_all(Planning& p);
// Leaves out machines whose hardware differs from the declaration; the others continue without them.
void drop_unlike(Planning& p);
// Refuses disks that several nodes select. Nodes outside the plan are included with the disks last seen
// there, which may be in use.
void refuse_shared_disks(Planning& p);
// Leaves out nodes on which nothing would change.
void drop_unchanged(Planning& p);

}  // namespace muster
