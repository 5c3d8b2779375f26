// Nodes in service whose image has been rebuilt since. They keep the older build until an operator replaces
// it (`muster reimage`, `muster up --reimage`), because a re-image ends their jobs. No I/O.
#pragma once

#include "controller/plan/planning.h"

namespace muster {

// True if the node is accepted or degraded and runs a different build of its declared image. An image without
// a recorded name counts as a build of the declared one; an image with a different name does not.
bool runs_older_build(const Planning& p, const Draft& d);
// Adds notes that list these nodes and the commands that replace their images.
void note_older_builds(Planning& p);

// Joins numbered names into ranges, "gpu[01-03,07],head", in the form that commands accept as NODES.
std::string names_in_ranges(std::vector<std::string> names);

}  // namespace muster
