// Compares a machine's hardware with the spec's declaration before anything is installed on it. No I/O.
//
// It compares only what is visible in the RAM system: processors and their model, memory, network ports with
// or without a link, GPUs on the PCI bus, and their model if a driver reported it. A value that the agent
// could not read is not a difference; acceptance judges all of it later (controller/report/verdict.h).
#pragma once

#include <string>
#include <vector>

#include "base/facts.h"
#include "controller/spec/spec.h"

namespace muster {

// True if a driver reported the GPU's model; otherwise its model is a PCI id, such as "10de:2330".
bool is_named(const GpuFacts& gpu);

// Returns the least memory that must be found if `declared` bytes are declared: firmware and kernel reserve
// some. The tolerance of 1.5 % plus 128 MiB covers that, and is less than one of 32 equal modules.
double least_memory(int64_t declared);

// Returns how many GPUs count: a display card without a compute driver only where the spec declares GPUs.
int counted_gpus(const HardwareSpec& declared, const HardwareFacts& found);

// Returns one text per difference, "8 GPUs declared, 7 found"; empty: no known difference. With `simulated`,
// GPUs are not counted, since a lab's virtual machines have none on their PCI bus.
std::vector<std::string> unlike_hardware(const HardwareSpec& declared, const HardwareFacts& found,
                                         bool simulated);

// Which disks a selector of the spec means; no other code decides this. Pure function, no I/O.

// How far a disk's size may be from the declared one, as a part of it.
inline constexpr double kSizeTolerance = 0.02;
// True if the disk is in the machine itself and has every property that the selector names. A selector that
// names none selects no disk.
bool disk_matches(const DiskMatch& match, const DiskFacts& disk);

}  // namespace muster
