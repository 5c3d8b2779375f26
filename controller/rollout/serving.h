// Groups of nodes that serve something together, and special nodes: the part of a rollout's view that depends
// on the spec alone. Pure functions, no I/O.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/rollout/rollout_view.h"
#include "controller/spec/spec.h"

namespace muster::rollout {

struct Serving {
  std::vector<Group> groups;                                  // `healed` is always true: not in the spec
  std::vector<std::string> sections = {};                     // the storage section of each of `groups`
  std::map<std::string, std::vector<size_t>> groups_of = {};  // node -> indexes into `groups`
  std::map<std::string, Special> special = {};                // only nodes that are not Special::no
};

// Groups: of each shared storage section that other nodes use, the members, the monitors if they have a
// quorum, and the single server or master without which the section stops (can_miss 0). Special nodes:
// leaders of playbooks, servers that no other node uses, and the node of Slurm's controller. `Group::name` of
// storage and exports is the section's name.
Serving serving_of(const Spec& spec);

}  // namespace muster::rollout
