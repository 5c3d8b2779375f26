// What a machine has, held against what the spec declares of it, before anything is installed on it. Pure.
//
// Only what can be told from the RAM system: processors and their model, memory, network ports whether they
// have a link or not, GPUs on the PCI bus, and their model where a driver has named it. What the agent could
// not read is not held against the machine; acceptance judges all of it later (controller/report/verdict.h).
#pragma once

#include <string>
#include <vector>

#include "base/facts.h"
#include "controller/spec/spec.h"

namespace muster {

// Whether a driver has told its model: without one a GPU is "10de:2330".
bool is_named(const GpuFacts& gpu);

// The least that may be found where `declared` bytes are declared: firmware and kernel keep some of it. 1.5 %
// and 128 MiB cover that and are less than one of 32 equal modules.
double least_memory(int64_t declared);

// One text for each difference, "8 GPUs declared, 7 found"; empty: nothing that is declared is known to be
// otherwise. `simulated`: GPUs are not counted, since a lab has none on its bus.
std::vector<std::string> unlike_hardware(const HardwareSpec& declared, const HardwareFacts& found,
                                         bool simulated);

}  // namespace muster
