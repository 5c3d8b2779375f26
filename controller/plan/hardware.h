// Compares a machine's hardware with the spec's declaration, before anything is installed on it. Pure.
//
// Only what is visible in the RAM system: processors and their model, memory, network ports with or without a
// link, GPUs on the PCI bus, and their model if a driver has named it. What the agent could not read does not
// count against the machine; acceptance judges all of it later (controller/report/verdict.h).
#pragma once

#include <string>
#include <vector>

#include "base/facts.h"
#include "controller/spec/spec.h"

namespace muster {

// Whether a driver has named its model: without one a GPU is "10de:2330".
bool is_named(const GpuFacts& gpu);

// The least memory that must be found if `declared` bytes are declared: firmware and kernel reserve some. 1.5
// % and 128 MiB cover that and are less than one of 32 equal modules.
double least_memory(int64_t declared);

// One text per difference, "8 GPUs declared, 7 found"; empty: no known difference. `simulated`: GPUs are not
// counted, since a lab has none on its bus.
std::vector<std::string> unlike_hardware(const HardwareSpec& declared, const HardwareFacts& found,
                                         bool simulated);

}  // namespace muster
