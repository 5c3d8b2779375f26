// A scheduler's type for a node's GPUs ("h100" in Gres=gpu:h100:8), so that one partition may have several
// kinds. Thread: pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/facts.h"

namespace muster {

// From a model name of a driver or a spec ("NVIDIA A100-SXM4-80GB", "*H100*"), or from the PCI id before a
// driver is loaded ("10de:2330"): the product without memory size and form factor. "" if unknown.
std::string gpu_type(const std::string& model);

// For a node: the spec's declaration takes precedence over what was found, because it exists before the first
// driver. "" if its GPUs are of several types or of no known type: they are then scheduled untyped.
std::string gpu_type_of(const std::string& declared_model, const std::vector<GpuFacts>& found);

}  // namespace muster
