// Nodes of which only a share could be used (base/facts.h, ShareFacts): inside a job or a container. What is
// measured there is compared with equal shares only, and limits that are for whole nodes do not hold.
// Internal to the rules of acceptance. Thread: pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/report/verdict.h"

namespace muster {

// Sets MeasuredStep::share, of what one node measured by itself. Valid as long as `facts`.
void mark_shares(std::vector<MeasuredStep>& steps, const std::map<std::string, const HardwareFacts*>& facts);

// What its values are compared with: its own kind of part, on an equal share of a node.
std::string likeness(const MeasuredStep& step);

// Whether this metric's absolute limits are for whole nodes, and the step had a share.
bool is_for_whole_nodes(const Json& expectation, const MeasuredStep& step);
// Whether nothing can be derived by this name (`derive`) for the share that the step had. cpu_peak can for
// cores that are named: the kernel counts those that it may use.
bool is_underivable(const std::string& name, const MeasuredStep& step);

}  // namespace muster
