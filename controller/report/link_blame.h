// Isolates the fault behind a slow link: a measurement between two nodes points at both, all of them together
// at one.
//
// Pure. The search of controller/locate/links.h weighs all pairs against one another; a direction that was
// held to a limit and reached it counts as good there, however much faster others are. Where it isolates no
// node: an end (a node's sending or receiving side) that reached what is expected with any partner is
// cleared; a slow pair with one end that is not cleared is that end's fault; with two, either may be it and
// both are named; with none, it is the path between them. The pairs' own checks are then explained and count
// for no node; each faulty end gets one check of its own, "<group>/located". Collectives, which point at
// every node they ran on, are settled with it: controller/report/collective.h. Thread: pure functions.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "controller/report/verdict.h"

namespace muster {

// `nic_of` gives what to call a node's port ("NIC 52:54:00:20:00:02"), or ""; `facts`: inventories, for
// limits that are derived from them.
void blame_links(std::map<std::string, std::vector<Check>>& checks, const std::vector<MeasuredStep>& steps,
                 const std::function<std::string(const std::string& node)>& nic_of,
                 const std::map<std::string, const HardwareFacts*>& facts = {});

}  // namespace muster
