// How much of its machine a process may use: inside a job (Slurm's cgroups, a container, `taskset`) it may
// have fewer processors, less memory or fewer GPUs than the machine. Measurements on a share are compared
// only with values of an equal share, and do not apply to the rest of the machine.
//
// Reads text in /proc and /sys below `files`: cgroups of version 2, version 1 or both together, with or
// without a cgroup namespace. Unreadable values set no limit. Thread safety: stateless functions.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "sys/os.h"

namespace muster {

struct NodeShare {
  // Logical processors, as the kernel counts them; fractional for a CPU time quota. 0: unknown.
  double cores = 0;
  int of_cores = 0;      // online
  std::string cores_by;  // the tightest limit: "cpuset", "affinity", "cpu.max"; empty: none
  uint64_t memory_bytes = 0, of_memory_bytes = 0;  // 0: unknown
  std::optional<int> gpus, of_gpus;                // usable GPUs, and all on the PCI bus; set by the caller
};

// Of this process (/proc/self), without `gpus`.
NodeShare node_share(const Files& files);

// "32 of 128 cores (cpuset)", "64 of 1007 GiB of memory", "2 of 8 GPUs"; empty: the whole node. Memory is
// listed only if it is less by more than a tenth: a scheduler's reserve for the system is not a share.
std::vector<std::string> share_words(const NodeShare& share);
// The key of comparable results; "" for a whole node.
std::string share_like(const NodeShare& share);

Json to_json(const NodeShare& share);

// "0-3,8" -> 0, 1, 2, 3, 8; empty if any part is not a number. Numbers from 65536 on are left out.
std::set<int> cpu_list(const std::string& text);
std::set<int> online_cpus(const Files& files);

}  // namespace muster
