// The input of next(): the current state of the cluster, which the caller collects from the spec, the store,
// the agents, the scheduler and the storage. Thread safety: plain value types.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "controller/nodes/held_by.h"
#include "controller/nodes/states.h"

namespace muster::rollout {

// How many nodes of the roles may be unavailable at once, for any reason. A percentage refers to all nodes of
// the roles; it is rounded down, but to no less than one node.
struct MaxUnavailable {
  int count = 1;
  int percent = 0;  // if above 0, used in place of `count`
};
inline int most_unavailable(const MaxUnavailable& allowed, int nodes) {
  if (allowed.percent <= 0) return allowed.count;
  return std::max(1, static_cast<int>(static_cast<int64_t>(nodes) * std::min(allowed.percent, 100) / 100));
}

// The part of `rollout:` in the spec that the choice of the next batch needs.
struct Policy {
  std::vector<std::string> roles;  // nodes of other roles are not touched
  MaxUnavailable max_unavailable;
  int canary = 1;          // nodes that must be accepted with an image before others get it; at least 1
  int failure_budget = 0;  // failed nodes allowed in the whole rollout; negative: no limit
};

enum class GroupKind { storage, quorum, exported };

// Nodes that together serve a storage section, a quorum or an export.
struct Group {
  std::string name;  // of the storage section, or of the service with the quorum
  GroupKind kind = GroupKind::storage;
  // How many members may be away at once. 0: it stops if any member is away, so no member is ever taken.
  int can_miss = 0;
  // True if no data is being copied or resynchronised, and all of its data can be read and written.
  bool healed = true;
};

// How a node gets its image (controller/plan/passes.h).
enum class Way { in_place, through_ram, none };

// Nodes without which a part of the cluster stops working. They are updated alone, last, in this order.
enum class Special { no, leader, single_server, scheduler };

struct Node {
  std::string name, role;
  // Digests. `image_wanted` is empty if no image is declared or built: the node is then not part of the
  // rollout. `image_now` is empty if it is unknown.
  std::string image_now, image_wanted;
  NodeState state = NodeState::unknown;
  HeldBy held_by = HeldBy::nobody;
  bool online = false;    // its agent reported within the last minute
  bool on_trial = false;  // the system that it runs is not yet committed
  // Not because of a muster run: drained or down in the scheduler, or registered there with less than
  // declared.
  bool maintenance = false;
  std::string why_maintenance = {};  // who keeps it out, since when and why, as far as is known
  bool has_bmc = false;              // it can be reset if it hangs
  bool skipped = false;  // an operator leaves it out (is_skipped()); it is in service, and so not away
  bool idle = true;      // it has no jobs; also true for a node that takes none
  Way way = Way::in_place;
  std::string way_reason = {};  // why it is not re-imaged in place
  Special special = Special::no;
  std::vector<size_t> groups = {};  // indexes into View::groups; it counts in each of them
  // From the record (recall()), as is `skipped`:
  bool failed_before =
      false;  // it failed in an earlier rollout, and was not accepted with another image since
  bool named_canary = false;  // an operator named it: it goes first, also if it failed before
  int64_t accepted_in = 0;    // the rollout that last gave it an image; 0: none
  // Lower ones go first: the rollout in which it last had its turn, and later the more often it was given
  // back since (turn_of()). So no node starves while images are built faster than all can get them, and one
  // whose jobs never end is tried ever more rarely.
  int64_t turn = 0;
};

struct View {
  Policy policy;
  // What is rolled out: a digest of the wanted images and the policy, as approved.
  std::string target;
  std::vector<Node> nodes;  // all nodes of the cluster, sorted by name, names unique
  std::vector<Group> groups;
  int64_t night = 0;        // increases by one when a window begins
  bool window_open = true;  // false: no batch begins
  int64_t active_run = 0;   // the active run, of this rollout or any other; 0: none
  // Agents could not report for long enough (NodeTable::reporting_for()): a node that seems to be away may
  // not be, and nothing is concluded from it.
  bool unsure = false;
};

}  // namespace muster::rollout
