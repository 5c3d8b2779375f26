// The input of next(): the cluster as it is now. The caller fills this in from the spec, the store,
// the agents, the scheduler and the storage. Thread: values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "controller/nodes/held_by.h"
#include "controller/nodes/states.h"
#include "controller/rollout/rollout_policy.h"

namespace muster::rollout {

enum class GroupKind { storage, quorum, exported };

// Nodes that serve something together.
struct Group {
  std::string name;  // of the storage section, or of what has the quorum
  GroupKind kind = GroupKind::storage;
  // This many members may be away at once. 0: it stops as soon as any of them is away, so none is ever taken.
  int can_miss = 0;
  // No data is being copied or resynchronised, and everything in it can be read and written.
  bool healed = true;
};

// How a node gets its image (controller/plan/in_place.h).
enum class Way { in_place, through_ram, none };

// Nodes without which a part of the cluster stops working. They go alone, after all others, in this order.
enum class Special { no, leader, single_server, scheduler };

struct Node {
  std::string name, role;
  // Digests. `image_wanted` is empty where the spec declares no image or it is not built: the node is not the
  // rollout's. `image_now` is empty where it is unknown.
  std::string image_now, image_wanted;
  NodeState state = NodeState::unknown;
  HeldBy held_by = HeldBy::nobody;
  bool online = false;       // its agent reported within the last minute
  bool on_trial = false;     // the system that it runs is not committed
  bool maintenance = false;  // the scheduler has it drained or down, and not for a run of muster's
  bool has_bmc = false;      // it can be reset when it hangs
  bool idle = true;          // no jobs; true also for a node that takes none
  Way way = Way::in_place;
  std::string way_reason = {};  // why it does not go in place
  Special special = Special::no;
  std::vector<size_t> groups = {};  // places in View::groups; a node with several counts in each
};

struct View {
  Policy policy;
  // What is rolled out: a digest of the wanted images and the policy, as they were approved.
  std::string target;
  std::vector<Node> nodes;  // of the whole cluster, sorted by name, no name twice
  std::vector<Group> groups;
  int64_t night = 0;        // rises when a window begins
  bool window_open = true;  // false: no batch begins
  int64_t active_run = 0;   // the run that is under way, of this rollout or not; 0: none
};

}  // namespace muster::rollout
