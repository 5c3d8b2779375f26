// Other work on a host's processors: what processes that are not ours use now, over the seconds of the look,
// by user. The load average is no evidence: it outlasts a job by minutes, and in a container it is the
// host's. It is only noted. Thread safety: stateless functions.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "agent/facts/node_share.h"
#include "agent/measuring/process_table.h"
#include "sys/os.h"

namespace muster {

struct ProcessUse {
  int64_t pid = 0;  // 0: of processes that cannot be seen
  std::string user, name;
  bool system = false;  // runs as an account of the system, as daemons do
  double cores = 0;     // processor seconds a second
};

struct LoadSeen {
  std::vector<ProcessUse> others = {};
  double cores = 0;          // physical cores of the share that is measured
  double load_average = 0;   // over the last minute
  double machine_cores = 0;  // physical cores of the machine, to which the average belongs
};

struct LoadVerdict {
  std::string busy = {};  // why the host is busy; "": it is not
  std::set<int64_t> pids = {};
  std::string note = {};  // what is worth knowing of a host that is not busy; "": nothing
};

// The rule. A host is busy if others use a tenth of its cores, and at least half a core: a measurement would
// report that much less, and the other work would lose as much. Between that and half a core it is noted.
// A daemon of the system that uses less than a twentieth of a core does not count.
LoadVerdict judge_load(const LoadSeen& seen);

// What processes used between two tables, without kernel threads, those of `not_counted`, and, where this
// process has only some processors, those that run on others only.
std::vector<ProcessUse> used_between(const Files& files, const ProcessTable& before,
                                     const ProcessTable& after, const std::set<int64_t>& not_counted);
// What processes used that /proc hides from this user: all that was used, without what is seen.
double hidden_use(const ProcessTable& before, const ProcessTable& after);

// Of the machine; its logical processors if the kernel shows no topology.
double physical_cores(const Files& files, const NodeShare& share);

}  // namespace muster
