// What earlier versions of muster wrote on a node and that chooses a device by a label: taken over by the
// next plan, which says so. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/facts.h"
#include "controller/spec/spec.h"

namespace muster {

// Of HardwareFacts::by_label those that muster wrote: of the system's own disk, and of mounts of the node's
// storage sections. Lines that a host brought along are not among them.
struct LabelLines {
  std::vector<std::string> of_system, of_storage;
  bool any() const { return !of_system.empty() || !of_storage.empty(); }
};
LabelLines label_lines(const Spec& spec, const NodeSpec& node, const HardwareFacts& facts);

}  // namespace muster
