// The type by which the scheduler distinguishes GPUs ("h100" in Gres=gpu:h100:8), so that one partition may
// have several types. Thread safety: stateless functions.
#pragma once

#include <string>
#include <vector>

#include "base/facts.h"

namespace muster {

// Returns the product without memory size and form factor, given a model name from a driver or a spec
// ("NVIDIA A100-SXM4-80GB", "*H100*") or, before a driver is loaded, a PCI id ("10de:2330"). "" if unknown.
std::string gpu_type(const std::string& model);

// Returns a node's type, preferably from the spec's declaration, which exists before a driver is loaded. ""
// if its GPUs are of several types or of no known type: they are then scheduled untyped.
std::string gpu_type_of(const std::string& declared_model, const std::vector<GpuFacts>& found);

}  // namespace muster
