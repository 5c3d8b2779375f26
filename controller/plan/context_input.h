// The inputs from which the values of a playbook's names are built, for one node. Plain data only.
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
  bool with_content = true;  // false: omit the current content of the disks (for configuration digests)
  const std::set<std::string>& forced = kNobody;  // PlanRequest::force
  // The nodes that the plan takes out of service until they are accepted again.
  const std::set<std::string>& pausing = kNobody;

  static inline const std::set<std::string> kNobody = {};
};

}  // namespace muster
