// Finds links that look slow compared with this node's other links. If a third node happens to measure the
// same partner at that moment, the rate is halved, so slow links are measured again at the end, alone at both
// ends (kernels/common/turns.h). Pure functions, no I/O.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace muster::checks {

// Indices in `parts` ({subject, result}; result: a measurement of `link`) of links that sent or received at
// less than 0.8 of this node's median: the slowest first, at most four. None if fewer than three were
// measured.
std::vector<size_t> slow_links(const Json& parts);
// How long a measurement of a link waits for its turn, in seconds. Round 0: the first one, beside others;
// from 1: a repetition, alone at both ends.
double turn_seconds(int round, double seconds);
// Combines two measurements of the same link: the faster one for each direction, and detail.first_try with
// the rates of `before` in MB/s. Wrong data in either measurement is kept; if `again` has no measurement,
// `before` is returned.
Json better_link(const Json& before, const Json& again);

}  // namespace muster::checks
