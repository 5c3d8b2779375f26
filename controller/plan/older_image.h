// Nodes at work whose image was built anew since: they go on with what they run until somebody says that it
// is to be replaced (`muster reimage`, `muster up --reimage`), because their jobs would end with it. Pure.
#pragma once

#include "controller/plan/planning.h"

namespace muster {

// It was accepted, or found degraded, and runs another build of the image that is declared for it. One whose
// image's name is not known counts as running that image; one that runs another image by name does not.
bool runs_older_build(const Planning& p, const Draft& d);
// Which nodes of the plan go on so, and what to type.
void note_older_builds(Planning& p);

// "gpu[01-03,07],head": names with a number at their end, put together; what a verb takes as NODES.
std::string names_in_ranges(std::vector<std::string> names);

}  // namespace muster
