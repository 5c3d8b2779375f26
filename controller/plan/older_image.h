// Nodes at work whose image was rebuilt since. They keep running the older build until an operator replaces
// it (`muster reimage`, `muster up --reimage`), because a re-image ends their jobs. Pure.
#pragma once

#include "controller/plan/planning.h"

namespace muster {

// It is accepted or degraded, and runs a different build of its declared image. A node whose image's name is
// not recorded counts as running that image; a node that runs an image of a different name does not.
bool runs_older_build(const Planning& p, const Draft& d);
// Adds notes that name these nodes, and the commands that replace their images.
void note_older_builds(Planning& p);

// "gpu[01-03,07],head": numbered names are joined into ranges, in the form that commands accept as NODES.
std::string names_in_ranges(std::vector<std::string> names);

}  // namespace muster
