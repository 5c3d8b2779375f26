// How long configuration and acceptance of a node take, measured in the run that accepted it: a trial has to
// be longer. Pure.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/plan/plan.h"
#include "controller/store/store.h"

namespace muster {

// The sum over the node's own actions, each counted from the start of the attempt that succeeded: waiting for
// other nodes in between does not count. 0: the journal has none of them; or the run only measured, perhaps
// with another profile.
DurationMs proving_took(const Plan& plan, const std::vector<JournalRow>& journal, const std::string& node);

struct DoneRun {
  Plan plan;
  std::vector<JournalRow> journal;
};
// None: it cannot be read.
using RunOf = std::function<std::optional<DoneRun>(int64_t id)>;

// The same of nodes that were last accepted in the runs with these ids. Where that run only measured, the
// newest of the runs before it that configured the node and accepted it counts; it is looked for in the last
// 50 of them. Each run is read once.
std::map<std::string, DurationMs> proving_times(const std::map<std::string, int64_t>& accepted,
                                                const RunOf& run_of);

}  // namespace muster
