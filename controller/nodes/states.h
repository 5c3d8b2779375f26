// The states of nodes and runs, and the one table of the words that the store, the API and events have for
// them. Thread: values.
#pragma once

#include <string_view>

#include "base/result.h"

namespace muster {

enum class NodeState {
  unknown,      // never seen
  discovered,   // its hardware was seen; nothing is installed, or nothing of use
  unadmitted,   // it was seen, and no spec declares it
  installing,   // a run works on it, for more than writing a slot beside its jobs
  accepted,     // it passed
  degraded,     // it works, below a floor of the profile
  quarantined,  // excluded, by a run or an operator (held_by.h)
  draining,     // its work and data are moved off it
  drained       // off; brought back only by name
};
std::string_view to_string(NodeState state);
// invalid for an unknown word: a state of a later version has no equivalent here.
Result<NodeState> node_state_from_string(std::string_view word);

enum class RunState {
  running,
  done,
  partial,  // some nodes were quarantined
  failed,
  cancelled
};
std::string_view to_string(RunState state);
// invalid for an unknown word.
Result<RunState> run_state_from_string(std::string_view word);

}  // namespace muster
