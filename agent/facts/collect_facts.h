// Collects HardwareFacts (base/facts.h) of the machine whose /proc, /sys and /etc are below `files`.
//
// Reads only: no process is run and nothing is written. The ESP of a system installed by muster is mounted
// read-only if it is not mounted; disks are opened for reading to see their content. What cannot be read
// stays unknown; an unreadable disk is reported in that disk's content. Thread: blocking; for the worker
// thread.
#pragma once

#include "base/facts.h"
#include "sys/os.h"

namespace muster {

Result<HardwareFacts> collect_facts(const Files& files);

// Parts, for tests. Root slots of the disk that this system runs from; `running` is empty if that is not one
// of muster's slots. Mounts the ESP read-only if needed.
BootFacts slot_facts(const Files& files);
CpuFacts cpu_facts(const Files& files);
uint64_t memory_bytes(const Files& files);
uint64_t usable_memory(const Files& files);
std::vector<NicFacts> nic_facts(const Files& files);
std::vector<GpuFacts> gpu_facts(const Files& files);
std::vector<LeftOut> left_out_facts(const Files& files);

}  // namespace muster
