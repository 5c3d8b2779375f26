// What an operator does next about a node: one sentence with the command to type, in every state. Pure
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/names.h"
#include "controller/nodes/held_by.h"
#include "controller/nodes/states.h"

namespace muster {

struct NodeStanding {
  NodeName name;
  NodeState state = NodeState::unknown;
  HeldBy held_by = HeldBy::nobody;
  bool declared = false;     // by the spec
  bool adopted = false;      // declared with the system that it has
  std::string image = {};    // that it is declared with
  bool image_built = false;  // so is `image`
  bool silent = false;
  bool by_hand = false;                     // a manual task is pending
  int64_t run = 0;                          // the newest run, if the node takes part in it
  std::optional<NodeRunState> in_run = {};  // in that run; none: it takes no part
  int64_t active_run = 0;                   // 0: no run is active
  std::string cause_next = {};              // Cause::next of the cause that it is part of; "": none
};

// Never empty; begins with "nothing" where nothing has to be done.
std::string next_step(const NodeStanding& node);

}  // namespace muster
