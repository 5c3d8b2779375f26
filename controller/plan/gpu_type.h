// The type by which a scheduler knows a node's GPUs ("h100" in Gres=gpu:h100:8), so that one partition may
// have several kinds. Thread: pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/facts.h"

namespace muster {

// Of a model as a driver or a spec names it ("NVIDIA A100-SXM4-80GB", "*H100*"), or as PCI does before there
// is a driver ("10de:2330"): the product without what only tells memory and form. "" when it is not known.
std::string gpu_type(const std::string& model);

// Of a node: what the spec declares counts more than what was found, because it is there before the first
// driver is. "" when its GPUs are of several types or of none that is known: the node's are then scheduled
// untyped.
std::string gpu_type_of(const std::string& declared_model, const std::vector<GpuFacts>& found);

}  // namespace muster
