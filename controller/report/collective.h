// Isolates the faulty node when a test of many nodes together (an all-reduce) fails. The node that started
// the test is no more likely to be at fault than the others. The test is repeated in pairs, round by round,
// pairing candidates with nodes that passed (controller/locate/search.h), until the failures identify a node
// or cannot be narrowed down. A pair fails if its data was wrong, it was aborted, or it missed the limits of
// the whole test (bus bandwidth does not depend on the number of nodes). One node starts all pairs: if its
// own network is the fault, no pair passes, and no node is named. Thread safety: stateless functions.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/report/verdict.h"

namespace muster {

// True if this step, a test of several nodes, reached by itself what its profile expects. `facts`: the
// inventories that derived limits are computed from, by node.
using FactsByNode = std::map<std::string, const HardwareFacts*>;
bool collective_passed(const MeasuredStep& step, const FactsByNode& facts = {});
// It could not be run at all (a program or library is missing): no node was tested, nothing to locate.
bool could_not_run(const MeasuredStep& step);

// Returns the next pairs of nodes to test, all at the same time; empty: enough is known, or nothing more can
// be. `step.rounds` has what was measured so far: [[{"pair": [a, b], "result"}...], ...], a list per round.
std::vector<std::pair<std::string, std::string>> next_pairs(const MeasuredStep& step,
                                                            const FactsByNode& facts = {});

// What earlier tests of single links located.
struct FaultyLinks {
  std::string names = {};  // "link of node03, sending or ..."; empty: none
  // Nodes whose own end of a link, and no other node's, could not be measured, for example behind a firewall.
  // Which pairs fail then depends on which of the two nodes opens the connection.
  std::set<std::string> cut_off = {};
  // Nodes through whose own end of a link, and no other node's, data arrives damaged.
  std::set<std::string> corrupting = {};
};

// Moves the failure of a collective away from the node that started it. If the pairs isolate a node, the
// check "GROUP/located" with the verdict of the whole test goes to that node. Otherwise it goes to the faulty
// link located before, if the data was right or each failed pair contains a node of `cut_off`. Wrong data of
// the whole goes to nodes that damage data (`corrupting`, or isolated by another collective), if all others
// had right data in pairs: whether few bytes are damaged in a pair is a matter of chance. Otherwise the
// test is "not located": degraded, since no node is proven faulty, for the pairs that remain open, or for all
// members if there are none. A GPU test that had to run and did not is handled by hold_unrun()
// (report/gpu_checks.h). `checks`, by node: as judge_measurements() and find_link_faults() left them.
void find_collective_faults(std::map<std::string, std::vector<Check>>& checks,
                            const std::vector<MeasuredStep>& steps, const FaultyLinks& links,
                            const FactsByNode& facts = {});

}  // namespace muster
