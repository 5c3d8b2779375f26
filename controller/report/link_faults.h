// Locates the fault behind slow links. One slow measurement implicates both of its nodes; the measurements of
// all pairs together can implicate one.
//
// Pure functions. The search of controller/locate/links.h compares all pairs; a direction that reached its
// explicit limit counts as good there, however fast others are. If that search isolates no node: an end (a
// node's sending or receiving side) that reached the expected rate with any partner is cleared. If only one
// end of a slow pair is not cleared, it is at fault; if neither is cleared, both are named; if both are, the
// path between them. The pairs' own checks are then explained and count against no node; each faulty end gets
// one check of its own, "<group>/located". Collectives, which implicate every node that they ran on, are
// resolved with these results: controller/report/collective.h. Thread safety: stateless functions.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "controller/report/verdict.h"

namespace muster {

// `nic_of` returns the name of a node's port for messages ("NIC 52:54:00:20:00:02"), or ""; `facts`: the
// inventories that limits are derived from.
void find_link_faults(std::map<std::string, std::vector<Check>>& checks,
                      const std::vector<MeasuredStep>& steps,
                      const std::function<std::string(const std::string& node)>& nic_of,
                      const std::map<std::string, const HardwareFacts*>& facts = {});

}  // namespace muster
