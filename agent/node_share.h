// How much of its machine a process may use: inside a job (Slurm's cgroups, a container, `taskset`) fewer
// processors, less memory or fewer GPUs than the machine has. Measurements on a share are compared only with
// values of the same share, and mean nothing for the rest of the machine.
//
// Reads the text of /proc and /sys below `files`: cgroups of version 2, version 1 and both together, with a
// cgroup namespace or without. Unreadable values set no limit. Thread: plain functions.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/os.h"

namespace muster {

struct NodeShare {
  // Logical processors, as the kernel counts them; a time quota may be a fraction. 0: unknown.
  double cores = 0;
  int of_cores = 0;      // online
  std::string cores_by;  // the tightest limit: "cpuset", "affinity", "cpu.max"; empty: none
  uint64_t memory_bytes = 0, of_memory_bytes = 0;  // 0: unknown
  std::optional<int> gpus, of_gpus;                // usable, and on the PCI bus; given by the caller
};

// Of this process (/proc/self). `gpus` of the result are left open.
NodeShare node_share(const Files& files);

// "32 of 128 cores (cpuset)", "64 of 1007 GiB of memory", "2 of 8 GPUs"; empty: the whole node. Memory is
// listed only if it is less by more than a tenth: a scheduler's reserve for the system is not a share.
std::vector<std::string> share_words(const NodeShare& share);
// All of it in one text, as the key of comparable results; "" for a whole node.
std::string share_like(const NodeShare& share);

Json to_json(const NodeShare& share);

// "0-3,8" -> 0, 1, 2, 3, 8; nothing if a part of it is not a number. Numbers from 65536 on are left out.
std::set<int> cpu_list(const std::string& text);
// Processors that are online; empty: unknown.
std::set<int> online_cpus(const Files& files);

}  // namespace muster
