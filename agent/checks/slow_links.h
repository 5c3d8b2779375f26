// Finds links that look slow compared with this node's other links. If a third node happens to measure the
// same partner at that moment, the rate is halved, so slow links are measured once more at the end. Pure
// functions, no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"

namespace muster::checks {

// Returns the indices in `parts` ({subject, result}; result: a measurement of `link`) of links that sent or
// received at less than 0.8 of this node's median: the slowest first, at most four. None if fewer than three
// links were measured.
std::vector<size_t> slow_links(const Json& parts);
// Returns how long to wait, in ms, before the `round`th repetition (from 1) of a slow link: 0 to twice
// `seconds` in the first round, to four times in the second, spread evenly by the names. If both ends
// measured at the same time, both see a slow link, and without this pause both would repeat at the same time.
int64_t pause_before(const std::string& node, const std::string& partner, int round, double seconds);
// Combines two measurements of the same link: the faster one for each direction, and detail.first_try with
// the rates of `before` in MB/s. Wrong data in either measurement is kept; if `again` has no measurement,
// `before` is returned.
Json better_link(const Json& before, const Json& again);

}  // namespace muster::checks
