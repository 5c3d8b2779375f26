// The result of a batch's run for each of its nodes, from its journal and the nodes' rows after it. Pure
// function; thread: that of the archive.
#pragma once

#include <map>
#include <string>

#include "controller/bringup/run_view.h"
#include "controller/ports/store.h"
#include "controller/rollout/rollout_row.h"

namespace muster {

// `run` has ended and was read with RunRows::all or ::turns; `nodes`: rows of its plan's nodes, as they are
// now. RunEnd::night is not set. corrupt: the journal does not belong to the plan.
Result<rollout::RunEnd> end_of(const RunSources& run, const std::map<std::string, NodeRow>& nodes);

}  // namespace muster
