// The states of nodes and runs, and the words for them that the store, the API and events use. Thread safety:
// plain value types.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster {

enum class NodeState {
  unknown,      // never seen
  discovered,   // its hardware was seen; no usable system is installed
  unadmitted,   // it was seen, but the spec does not declare it
  installing,   // a run works on it and does more than write its unused slot
  accepted,     // it passed acceptance
  degraded,     // it works, but is below a floor of the acceptance profile
  quarantined,  // excluded, by a run or an operator (held_by.h)
  draining,     // its jobs and data are being moved off it
  drained       // out of service; brought back only by a command that names it
};
std::string_view to_string(NodeState state);
// Code::invalid for an unknown word: the state of a later version has no equivalent in this one.
Result<NodeState> node_state_from_string(std::string_view word);
std::array<NodeState, 9> node_states();  // all of them

enum class RunState {
  running,
  done,
  partial,  // some nodes were quarantined
  failed,
  cancelled
};
std::string_view to_string(RunState state);
// Code::invalid for an unknown word.
Result<RunState> run_state_from_string(std::string_view word);
std::array<RunState, 5> run_states();

// Of a node in a run.
enum class NodeRunState {
  waiting,  // for its turn
  running,
  done,
  returned,  // back in its previous system
  quarantined,
  not_started
};
std::string_view to_string(NodeRunState state);
std::optional<NodeRunState> node_run_state_from_string(std::string_view word);

}  // namespace muster
