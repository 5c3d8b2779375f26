// Lines that earlier versions of muster wrote on a node and that select a device by its label: the next plan
// replaces them, with a note. Pure functions, no I/O.
#pragma once

#include <string>
#include <vector>

#include "base/facts.h"
#include "controller/spec/spec.h"

namespace muster {

// The lines of HardwareFacts::by_label that muster wrote: for the system's own disk, and for mounts of the
// node's storage sections. Lines that the host's owner wrote are not included.
struct LabelLines {
  std::vector<std::string> of_system, of_storage;
  bool any() const { return !of_system.empty() || !of_storage.empty(); }
};
LabelLines label_lines(const Spec& spec, const NodeSpec& node, const HardwareFacts& facts);

}  // namespace muster
