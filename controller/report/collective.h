// Isolates the faulty node when a test of many nodes together (an all-reduce) fails: any of them may be at
// fault, the node that started it no more than the others. The test is repeated in pairs, round by round,
// candidates with partners that passed (controller/locate/search.h), until the failures name a node or cannot
// be narrowed down further.
//
// A pair failed when its data was wrong, it broke off, or it missed the limits that the whole test is held
// to: bus bandwidth does not depend on the number of nodes by its definition. All pairs are started by the
// same node; a pair that its own network made fail looks like any other failure, so with that node at fault
// no pair passes, and no node is named. Thread: pure functions.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/report/verdict.h"

namespace muster {

// Whether this step, a test of several nodes, reached what its profile expects, by itself.
// `facts`: the inventories that derived limits come from, by node.
using FactsByNode = std::map<std::string, const HardwareFacts*>;
bool collective_passed(const MeasuredStep& step, const FactsByNode& facts = {});
// It could not be run at all (a program or library is missing): no test of any node, so there is nothing to
// repeat or to locate.
bool could_not_run(const MeasuredStep& step);

// Names of the next pairs to test, all at the same time; empty: enough is known, or no more can be.
// `step.rounds` has what was measured so far: [[{"pair": [a, b], "result"}...], ...], a list per round.
std::vector<std::pair<std::string, std::string>> next_pairs(const MeasuredStep& step,
                                                            const FactsByNode& facts = {});

// What was located before, by tests of single links.
struct FaultyLinks {
  std::string names = {};  // "link of node03, sending or ..."; empty: none
  // Nodes whose own link, and no other end's, could not be measured: behind a firewall, say. Which pairs fail
  // then depends on which of the two opens the connection.
  std::set<std::string> cut_off = {};
};

// Moves the failure of a collective off the node that started it. It names the node that the pairs isolate
// ("GROUP/located", as bad as the whole test); else the faulty link that was located before, if the data was
// right or each pair that failed has a node that is cut off; else the test is "not located", and counts for
// the pairs that stay open, or for all members if there are none: degraded, since none is proven faulty. A
// test over GPUs that had to run and did not is handled by hold_unrun() (controller/report/gpu_checks.h).
// `checks` by node, as judge_measurements() and blame_links() left them.
void blame_collectives(std::map<std::string, std::vector<Check>>& checks,
                       const std::vector<MeasuredStep>& steps, const FaultyLinks& links,
                       const FactsByNode& facts = {});

}  // namespace muster
