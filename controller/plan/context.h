// The names a playbook may use (docs/playbook-context.md) as a value, and the steps a node gets from them.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/wire.h"
#include "controller/plan/disks.h"
#include "controller/spec/playbook.h"
#include "controller/spec/spec.h"

namespace muster {

// What is the same for every node of a cluster, made once for all of them: it grows with the cluster.
struct ClusterContext {
  Json nodes, machines, gpu_nodes;  // as in docs/playbook-context.md
  std::string hosts;
};
// `machines`: the nodes that were seen at least once.
ClusterContext cluster_context(const Spec& spec, const std::map<std::string, const HardwareFacts*>& machines);

struct ContextInput {
  const Spec& spec;
  const NodeSpec& node;
  const NodeDisks& disks;
  std::string controller_address;
  const std::map<std::string, std::string>& public_values;
  const std::map<std::string, const HardwareFacts*>& machines;  // nodes that were seen at least once
  const ClusterContext& cluster;
  bool with_content = true;  // false: what is on the disks at this moment is left out (configuration digests)
};
Json playbook_context(const ContextInput& input);

// "10.20.0.0/24" -> "24"; "" without one.
std::string prefix_of(const std::string& cidr);

struct PlannedStep {
  wire::Step step;
  int stage = 1;
  std::string on = "all";
};
// The steps of `phase` this node gets from the playbook, rendered. Problems are appended, each naming
// playbook, step and node. `item` is put into the context and taken out again: it is too large to be copied
// for every step.
std::vector<PlannedStep> plan_steps(const Playbook& playbook, const std::string& phase, Json& context,
                                    std::vector<std::string>& problems);

}  // namespace muster
