// Lines that earlier versions of muster wrote on a node and that choose a device by label: the next plan
// replaces them and notes it. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/facts.h"
#include "controller/spec/spec.h"

namespace muster {

// Of HardwareFacts::by_label those that muster wrote: of the system's own disk, and of mounts of the node's
// storage sections. A host's own lines are not included.
struct LabelLines {
  std::vector<std::string> of_system, of_storage;
  bool any() const { return !of_system.empty() || !of_storage.empty(); }
};
LabelLines label_lines(const Spec& spec, const NodeSpec& node, const HardwareFacts& facts);

}  // namespace muster
