// What the nodes of a spec serve together, and which of them are special: the part of a rollout's view that
// does not change while the spec is the same. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/rollout/rollout_view.h"
#include "controller/spec/spec.h"

namespace muster::rollout {

struct Serving {
  std::vector<Group> groups;                                  // all of them healed
  std::vector<std::string> sections = {};                     // of `groups`: the storage section
  std::map<std::string, std::vector<size_t>> groups_of = {};  // node -> places in `groups`
  std::map<std::string, Special> special = {};                // those that are not Special::no
};

// Groups are the shared storage sections that other nodes use: their members, their monitors where they have
// a quorum, and the one server or master without which a section stops (it can miss none). Special are
// leaders of playbooks, servers that no other node uses, and the node of Slurm's controller.
// `Group::name` of storage and exports is the section's.
Serving serving_of(const Spec& spec);

}  // namespace muster::rollout
