// Other measurements of this host: whether one is under way, by what really runs and by the lock
// (agent/measuring/host_claim.h), and who started it.
//
// An agent of `muster accept --hosts` that has the option --session obeys the lock, so it counts only if it
// holds it: of two that begin at the same moment, one measures and the other is busy. Programs that measure
// always count, also where the lock cannot be seen, as in a container that shares only the PID namespace.
// Thread safety: stateless functions.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "agent/measuring/host_claim.h"
#include "agent/measuring/process_table.h"
#include "sys/os.h"

namespace muster {

// The value of --session of an agent that takes no lock, because its session puts no load on the host.
inline constexpr const char* kNoSession = "none";

// Processes of this session: `self` and its guard, agents of the same `session` from before a lost
// connection, and all that they started. Here and below, an agent is one only if it runs as root or as the
// user of `self`: any user can give a process an agent's command line, which would hide what it does.
std::set<int64_t> own_measurement(const Files& files, const ProcessTable& table, int64_t self,
                                  const std::string& session);
// Agents of any session, and all that they started.
std::set<int64_t> all_measurements(const Files& files, const ProcessTable& table, int64_t self);

struct OtherMeasurement {
  std::string
      text;  // "another measurement is running: pid 700 (muster-agent) of user root, login alice, ..."
  std::set<int64_t> pids;
};
// `holder`: of the lock, if this process did not get it.
std::optional<OtherMeasurement> other_measurement(const Files& files, const ProcessTable& table,
                                                  const std::set<int64_t>& own,
                                                  const std::optional<HostClaim::Holder>& holder);

}  // namespace muster
