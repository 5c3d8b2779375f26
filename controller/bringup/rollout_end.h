// The result of a batch's run for each of its nodes, from its journal and the nodes' rows after it. Pure;
// thread: that of the archive.
#pragma once

#include <map>
#include <string>

#include "controller/bringup/run_view.h"
#include "controller/rollout/rollout_row.h"
#include "controller/store/store.h"

namespace muster {

// `run` has ended, with all its rows or their turns; `nodes`: those of its plan, as they are now. Without
// RunEnd::night. corrupt: the journal does not belong to the plan.
Result<rollout::RunEnd> end_of(const RunSources& run, const std::map<std::string, NodeRow>& nodes);

}  // namespace muster
