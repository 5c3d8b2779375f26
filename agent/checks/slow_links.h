// Links that look slow compared with this node's others. A partner that a third node measures at the same
// moment, because the nodes are out of step, gives half its rate: so such links are measured again at the
// end. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"

namespace muster::checks {

// Of `parts` ({subject, result}; result: a measurement of `link`) the places of those that sent or received
// at less than 0.8 of this node's median; the slowest first, at most four. None if fewer than three were
// measured.
std::vector<size_t> slow_links(const Json& parts);
// How long to wait before such a link is measured for the `round`th time again (from 1), ms: from 0 to twice
// `seconds` in the first round, four times in the second, evenly spread by the names. Both ends see a link
// slow when each measured it while the other did, and without a pause they would do so again.
int64_t pause_before(const std::string& node, const std::string& partner, int round, double seconds);
// Combines two measurements of the same link: the faster one for each direction, and detail.first_try with
// the rates of `before` in MB/s. Wrong data in either is kept; if `again` has no measurement, nothing
// changes.
Json better_link(const Json& before, const Json& again);

}  // namespace muster::checks
