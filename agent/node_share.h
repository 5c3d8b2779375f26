// How much of its machine a process may use: inside a job (Slurm's cgroups, a container, `taskset`) fewer
// processors, less memory or fewer GPUs than are there. What is measured on a share is compared with values
// of the same share only, and says nothing about the rest of the machine.
//
// Reads the text of /proc and /sys below `files`: cgroups of version 2, version 1 and both beside each other,
// under a cgroup namespace or not. What cannot be read limits nothing. Thread: plain functions.
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
  // Logical processors, as the kernel counts them; a quota of time may be a part of one. 0: unknown.
  double cores = 0;
  int of_cores = 0;      // online
  std::string cores_by;  // what is the narrowest: "cpuset", "affinity", "cpu.max"; empty: nothing
  uint64_t memory_bytes = 0, of_memory_bytes = 0;  // 0: unknown
  std::optional<int> gpus, of_gpus;                // usable, and on the PCI bus; given by the caller
};

// Of this process (/proc/self). `gpus` of the result are left open.
NodeShare node_share(const Files& files);

// "32 of 128 cores (cpuset)", "64 of 1007 GiB of memory", "2 of 8 GPUs"; none: it is the whole node. Memory
// counts from a tenth less: what a scheduler keeps for the system makes no share.
std::vector<std::string> share_words(const NodeShare& share);
// All of it in one text, for what is compared with its like only; "" for a whole node.
std::string share_like(const NodeShare& share);

Json to_json(const NodeShare& share);

// "0-3,8" -> 0, 1, 2, 3, 8; nothing where a part of it is no number. Numbers from 65536 on are left out.
std::set<int> cpu_list(const std::string& text);
// Processors that are online; empty: unknown.
std::set<int> online_cpus(const Files& files);

}  // namespace muster
