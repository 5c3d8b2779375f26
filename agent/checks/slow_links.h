// Links that look slow beside this node's others. A partner that is measured by a third node at the same
// moment, as one is that fell out of step, gives half its rate: so they are measured once more at the end.
// Pure.
#pragma once

#include <vector>

#include "base/json.h"

namespace muster::checks {

// Of `parts` ({subject, result}; result: a measurement of `link`) the places of those that sent or received at
// less than 0.8 of this node's median; the slowest first, at most four. None of fewer than three measured.
std::vector<size_t> slow_links(const Json& parts);
// One measurement of two of the same link: of each direction the faster one, and detail.first_try with the
// rates of `before` in MB/s. Wrong data is kept, whichever has it; what was not measured `again` changes
// nothing.
Json better_link(const Json& before, const Json& again);

}  // namespace muster::checks
