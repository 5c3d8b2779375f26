// The basis for choosing nodes: for each node whether it can be taken, or why not; which are away; which
// images are proven. Pure.
#pragma once

#include <string>
#include <vector>

#include "controller/rollout/next.h"

namespace muster::rollout {

// How far the canary of an image has come.
struct ImageProof {
  const std::string* digest = nullptr;
  int wanted = 1;         // Policy::canary
  int proven = 0;         // canaries of this rollout that were accepted
  int now = 0;            // nodes that could be its canary now
  int another_night = 0;  // that were given back in this night
  int away = 0;
  int under_way = 0;     // of the batch that is under way
  bool running = false;  // a node that could have been its canary is at work with it already

  // Fewer canaries than the policy requires are enough if no other node at work can be one, but at least one
  // is needed: of this rollout, or a node that was re-imaged outside of it.
  bool is_proven() const {
    return proven >= wanted || (now + another_night + under_way == 0 && (proven > 0 || running));
  }
  bool is_possible() const { return is_proven() || now + another_night + under_way + away > 0; }
};

struct Survey {
  std::vector<Reason> reason;      // per node; none: not concerned, or `can` is set
  std::vector<int> group;          // per node, of its reason; -1
  std::vector<char> can;           // per node: it needs the update and, taken by itself, can be taken
  std::vector<char> under_way;     // per node: it is in the row's batch; counts as away
  std::vector<int> times;          // per node: how often it was given back
  std::vector<int> image;          // per node that needs the update: place in `images`; -1
  std::vector<int> missing;        // per group: members that are away
  std::vector<ImageProof> images;  // those that nodes still need
  int scope = 0;                   // nodes of the roles
  int room = 0;                    // max_unavailable less those that are away; may be negative
};

// It was given back in this night, and has a turn again in another one.
bool is_of_this_night(Reason reason);
bool in_scope(const View& view, const Node& node);
bool is_away(const Node& node);
// Its failure affects only itself, and it can be rolled back without manual work.
bool may_be_canary(const Node& node);

Survey survey(const View& view, const Row& row);

}  // namespace muster::rollout
