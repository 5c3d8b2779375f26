// The basis for choosing nodes: for each node whether it can be taken, or why not; which nodes are away;
// which images are proven. Pure functions, no I/O.
#pragma once

#include <string>
#include <vector>

#include "controller/rollout/next.h"

namespace muster::rollout {

struct ImageProof {
  const std::string* digest = nullptr;
  int wanted = 1;       // Policy::canary
  int proven = 0;       // canaries accepted in this rollout
  int now = 0;          // nodes that can be its canary now
  int next_window = 0;  // possible canaries that were returned to service unchanged in this window
  int away = 0;
  int under_way = 0;     // canaries in the batch under way
  bool running = false;  // a possible canary is already in service with it
  bool held = false;     // Row::held
  bool needed = false;   // nodes in the rollout do not run it, apart from skipped ones

  // If no further node in service can be a canary, fewer than the policy requires are enough, but at least
  // one is required: a canary of this rollout, or a node that was re-imaged outside it.
  bool is_proven() const {
    return proven >= wanted || (now + next_window + under_way == 0 && (proven > 0 || running));
  }
  bool is_possible() const { return is_proven() || now + next_window + under_way + away > 0; }
};

struct Survey {
  std::vector<Reason> reason;      // per node; none: not in the rollout, up to date, or `can` is set
  std::vector<int> group;          // per node: index of the group in its reason; -1: none
  std::vector<char> can;           // per node: it needs the update and could be taken alone
  std::vector<char> under_way;     // per node: it is in the row's batch, and so counts as away
  std::vector<int> image;          // per node that needs the update: index into `images`; -1: none
  std::vector<int> missing;        // per group: members that are away
  std::vector<ImageProof> images;  // images that nodes still need
  int scope = 0;                   // number of nodes of the roles
  int room = 0;                    // max_unavailable minus the nodes that are away; may be negative
};

// True if the node was returned to service unchanged in this window, and is tried again in another window.
bool is_of_this_window(Reason reason);
bool in_scope(const View& view, const Node& node);
bool is_away(const Node& node);
// True if the node's failure affects no other node, and the node can be rolled back without manual work.
bool may_fail(const Node& node);
// A node that may fail, and whose failure would be one of the image: not one that failed before.
bool may_be_canary(const Node& node);

Survey survey(const View& view, const Row& row);

}  // namespace muster::rollout
