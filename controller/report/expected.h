// Expected values: what a healthy part reaches, derived from what was found, each with its source.
//
// Two kinds: the table of GPU models (base/gpu_models.h), and bounds computed from the discovered topology
// (processors, memory modules, network ports). Nothing is guessed: if a value cannot be derived, the reason
// is given, and the measurement is compared only with the other nodes and the node's own history.
// docs/acceptance.md lists formulas and sources. Thread safety: stateless functions.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/facts.h"
#include "base/json.h"

namespace muster {

struct Derived {
  std::optional<double> value = {};
  std::string text = {};    // the formula with its numbers; without a value: why there is none
  std::string source = {};  // of the numbers in it
  std::string of = {};      // without a value: what has no figure ("NVIDIA X900"); "": not a single thing
};
inline Derived without(std::string why, std::string of = {}) {
  return {std::nullopt, std::move(why), "", std::move(of)};
}

// Names that a profile may give after `derive:`. One of them, kDriveModels, is handled by
// controller/report/drive_floors.h and not by derive().
const std::vector<std::string>& derivable();
// `result` is the measurement (kernels add what they found to it), `facts` the node's inventory or null,
// `gpus` the models of the GPUs that were measured; empty: those of the inventory.
// Units are those of the kernels: GFLOP/s, MB/s; for gpu_*, those of the table.
Derived derive(const std::string& name, const Json& result, const HardwareFacts* facts,
               std::set<std::string> gpus = {});

// Bus bandwidth bound of an all-reduce over `nodes` nodes, GB/s, as nccl-tests defines busbw.
struct CollectiveShape {
  int nodes = 1;
  int gpus_per_node = 8;
  int nics_per_node = 8;
  double nic_gbps = 48.5;          // usable rate of one port, GB/s
  double intra_ring_gbps = 368;    // ring inside a node
  double intra_switch_gbps = 480;  // NVLS inside a node; 0: none
  enum class Algorithm { ring, hierarchical, sharp } algorithm = Algorithm::hierarchical;
};
Derived collective_bound(const CollectiveShape& shape);

}  // namespace muster
