// How much memory this process may lock. RDMA needs all of it locked that an adapter accesses: a program that
// may lock less fails, and its link looks broken. Reads /proc/self below `files`. Thread safety: stateless
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sys/os.h"

namespace muster {

inline constexpr uint64_t kUnlimited = UINT64_MAX;

// Bytes, by the limit of locked memory (`ulimit -l`). kUnlimited also for a process with CAP_IPC_LOCK, to
// which the limit does not apply: root, but in containers only where they were given it. nullopt: unknown.
std::optional<uint64_t> locked_memory(const Files& files);

// "locked memory is limited to 64 KiB (`ulimit -l`)" where perftest needs more; "": it is enough, or unknown.
std::string too_little_locked(std::optional<uint64_t> bytes);

}  // namespace muster
