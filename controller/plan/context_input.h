// What the names of a playbook are computed from, for one node. Pure values.
#pragma once

#include <map>
#include <set>
#include <string>

#include "controller/plan/cluster_context.h"
#include "controller/plan/disk_selection.h"
#include "controller/spec/spec.h"

namespace muster {

struct ContextInput {
  const Spec& spec;
  const NodeSpec& node;
  const NodeDisks& disks;
  std::string controller_address;
  const std::map<std::string, std::string>& public_values;
  ClusterContext& cluster;
  bool with_content = true;  // false: what is on the disks at this moment is left out (configuration digests)
  const std::set<std::string>& forced = kNobody;  // PlanRequest::force
  // The nodes that the plan takes from their work until they are accepted again.
  const std::set<std::string>& pausing = kNobody;

  static inline const std::set<std::string> kNobody = {};
};

}  // namespace muster
