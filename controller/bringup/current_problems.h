// What is wrong now. The only place that decides what counts as a problem, so that status, `why`, metrics
// and notices cannot disagree. Pure functions of values, which CurrentCauses gathers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/names.h"
#include "base/time.h"
#include "controller/causes/cause.h"
#include "controller/nodes/held_by.h"
#include "controller/nodes/states.h"
#include "controller/rollout/rollout_record.h"

namespace muster {

struct NodeNow {
  NodeName name = {};
  NodeState state = NodeState::unknown;
  HeldBy held_by = HeldBy::nobody;
  std::string reason = {}, image_digest = {};  // of its row
  TimeMs held_since = 0;                       // likewise
  TimeMs silent_since = 0;                     // NodesView::silent_since()
  // In the active run:
  bool at_work = false;      // the run reports why the node waits, also while it is silent
  std::string failed = {};   // why it goes back, or went back, to its previous system; "": it does not
  std::string by_hand = {};  // the manual task that is pending for it
  TimeMs by_hand_since = 0;
};

struct ClusterNow {
  std::vector<NodeNow> nodes = {};                     // of the spec
  Json storage = Json::array();                        // StorageReports::status()
  const rollout::Record* rollout = nullptr;            // the newest; null: none
  std::map<std::string, std::string> controller = {};  // NodesView::problems()
};

// A node has at most one: that it failed, else that a person must act, that it is silent, that it is
// degraded, or that its storage is. None while an operator holds or drains it, and before it was installed. A
// canary that failed is part of the problem that its image is held, and none before its batch has ended. Topics "image NAME" and "receiver NAME" of
// `controller` are problems of an image's build and of a receiver of notices.
std::vector<Problem> current_problems(const ClusterNow& now);

// True if the node counts, sick or healthy: it is in service, or was, and no operator took it out.
bool counts(const NodeNow& node);

}  // namespace muster
