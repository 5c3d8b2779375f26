// Checks before a load test runs on a host: whether it is in use, and which share of it can be measured. A
// busy host is rejected with these reasons.
//
// Reads text in /proc and /sys below `files`, within milliseconds; starts nothing and writes nothing. The
// caller brings what takes time: an earlier table of the processes, the lock of measurements, and NVML's
// reading. What an unprivileged user cannot see is listed in not_looked_at, not taken as absent. A false
// alarm prevents a test; a missed reason causes a wrong verdict or disturbs a job. Thread safety: stateless
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/facts/node_share.h"
#include "agent/measuring/host_claim.h"
#include "agent/measuring/process_table.h"
#include "base/json.h"
#include "sys/os.h"

namespace muster {

enum class Busy {
  job,          // a step of a Slurm job that does not include this process
  packages,     // apt, dpkg, dnf, rpm, zypper running; not queries
  measurement,  // a different measurement by muster (agent/measuring/other_measurement.h)
  load,         // other work on its processors now (agent/measuring/other_load.h)
  gpu_memory,   // used by a different process
};
std::string_view to_string(Busy kind);

struct BusyReason {
  Busy kind = Busy::job;
  std::string text;             // "Slurm job 4711 is running (steps 0, batch)"
  std::set<int64_t> pids = {};  // of the processes; may be empty
};

// A process that has memory of a GPU (one of NVML's compute processes). `pid`: as on the host.
struct GpuHolder {
  std::string gpu;  // index, UUID or PCI address, for messages
  int64_t pid = 0;
  std::optional<uint64_t> mib = {};  // absent: the driver does not report it
};

struct LookInput {
  int64_t self = 0;  // pid of this process; 0: unknown, so its ancestors are not searched for its own job
  std::string session = {};   // of this agent: processes of earlier agents with it are its own
  ProcessTable earlier = {};  // from about a second before
  std::optional<HostClaim::Holder> holder = {};  // of the lock, if this process did not get it
  std::string no_lock = {};                      // why there is no lock on this host
  std::vector<GpuHolder> holders = {};
  bool gpus_looked_at = true;                  // false: NVML could not be read on a host with GPUs
  std::optional<int> gpus = {}, of_gpus = {};  // NodeShare
};

struct HostLook {
  std::vector<BusyReason> busy = {};            // in the order of Busy; empty: not busy, as far as visible
  std::vector<std::string> not_looked_at = {};  // "processes of other users: /proc hides them"
  std::vector<std::string> notes = {};          // work that does not make the host busy
  NodeShare share = {};
  std::set<std::string> own_jobs = {};        // Slurm jobs that include this process
  int rdma_ports = 0;                         // fabric_ports()
  std::optional<uint64_t> locked_bytes = {};  // locked_memory()
};

HostLook look_first(const Files& files, const LookInput& input);

Json to_json(const HostLook& look);

}  // namespace muster
