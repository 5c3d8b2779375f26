// Collects HardwareFacts (base/facts.h) of the machine whose /proc, /sys and /etc lie below `files`.
//
// Reads only: no process is run and nothing is written; the ESP of a system installed by muster is mounted
// for reading if it is not mounted; disks are opened for reading to see what is on them. What cannot be read
// stays unknown; only an unreadable disk probe is an error of that disk (its content says so). Thread:
// blocking; for the worker thread.
#pragma once

#include "base/facts.h"
#include "base/os.h"

namespace muster {

Result<HardwareFacts> collect_facts(const Files& files);

// Parts, for tests.
CpuFacts cpu_facts(const Files& files);
uint64_t memory_bytes(const Files& files);
uint64_t usable_memory(const Files& files);
std::vector<NicFacts> nic_facts(const Files& files);
std::vector<GpuFacts> gpu_facts(const Files& files);

}  // namespace muster
