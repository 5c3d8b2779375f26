// Nodes of which only a share was usable (base/facts.h, ShareFacts), inside a job or a container.
// Measurements there are compared only with those of equal shares, and limits for whole nodes do not apply.
// Internal to the acceptance rules. Thread safety: stateless functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/report/verdict.h"

namespace muster {

// Sets MeasuredStep::share, a pointer into `facts`, of steps that one node measured by itself.
void mark_shares(std::vector<MeasuredStep>& steps, const std::map<std::string, const HardwareFacts*>& facts);

// Returns the key of comparable measurements: the same kind of part, on an equal share of a node.
std::string likeness(const MeasuredStep& step);

// True if this metric's absolute limits are for whole nodes, and the step had only a share.
bool is_for_whole_nodes(const Json& expectation, const MeasuredStep& step);
// True if the value named by `derive` cannot be derived for the share that the step had. cpu_peak can be, for
// a share of named cores: the kernel counts the cores that it may use.
bool is_underivable(const std::string& name, const MeasuredStep& step);

}  // namespace muster
