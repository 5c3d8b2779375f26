// The states of nodes and runs, and the one table of the words that the store, the API and events have for
// them. Thread: values.
#pragma once

#include <string_view>

#include "base/result.h"

namespace muster {

enum class NodeState {
  unknown,      // never seen
  discovered,   // its hardware was seen; nothing is installed, or what is there counts for nothing
  unadmitted,   // it was seen, and no spec declares it
  installing,   // a run is at work on it, for more than to write a slot beside its jobs
  accepted,     // it passed
  degraded,     // it works, below a floor that is asked about
  quarantined,  // taken out, by a run or an operator (held_by.h)
  draining,     // its work and data are moved off it
  drained       // off; it is only brought back by name
};
std::string_view to_string(NodeState state);
// invalid for a word that is none of them: a node in a state that only a later version knows is in none that
// this one has.
Result<NodeState> node_state_from_string(std::string_view word);

enum class RunState {
  running,
  done,
  partial,  // some nodes were quarantined
  failed,
  cancelled
};
std::string_view to_string(RunState state);
// invalid for a word that is none of them.
Result<RunState> run_state_from_string(std::string_view word);

}  // namespace muster
