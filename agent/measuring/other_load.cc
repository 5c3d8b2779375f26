#include "agent/measuring/other_load.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/json_dump.h"
#include "host/processors.h"

namespace muster {
namespace {

constexpr double kBusyPart = 0.1, kBusyLeast = 0.5;  // of all cores; cores
constexpr double kDaemon = 0.05;                     // cores
constexpr size_t kNamed = 3;
constexpr uint32_t kFirstUser = 1000, kNobody = 65534;

struct UserUse {
  double cores = 0, most = 0;
  size_t processes = 0;
  std::string name;  // of the process that uses most
};

// "user bob 63.9 (64 processes, "ring"); user eve 2.0 (1 process, "make")"
std::string words_of(const std::vector<const ProcessUse*>& counted) {
  std::map<std::string, UserUse> users;
  for (const ProcessUse* one : counted) {
    UserUse& user = users[one->user];
    user.cores += one->cores;
    user.processes += one->pid > 0 ? 1 : 0;
    if (one->cores > user.most) user.most = one->cores, user.name = one->name;
  }
  std::vector<std::pair<std::string, UserUse>> sorted(users.begin(), users.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.second.cores > b.second.cores; });
  std::vector<std::string> out;
  for (const auto& [name, user] : sorted) {
    if (out.size() == kNamed) break;
    const std::string processes =
        user.processes == 0
            ? ""
            : fmt::format(" ({} {}, {})", user.processes, user.processes == 1 ? "process" : "processes",
                          dump_ascii(Json(user.name)));
    out.push_back(fmt::format("{} {:.1f}{}", name, user.cores, processes));
  }
  return fmt::format("{}", fmt::join(out, "; "));
}

std::set<int> allowed_processors(const Files& files, const std::string& process) {
  return cpu_list(process_status(files, process, "Cpus_allowed_list"));
}

// True unless both are known and have no processor in common.
bool shares_processors(const Files& files, int64_t pid, const std::set<int>& own) {
  const auto others = allowed_processors(files, std::to_string(pid));
  if (own.empty() || others.empty()) return true;
  return std::any_of(others.begin(), others.end(), [&](int cpu) { return own.count(cpu) > 0; });
}

double seconds_between(const ProcessTable& before, const ProcessTable& after) {
  return std::max(after.uptime - before.uptime, 1 / kTicks);
}

// A process that has started since has used all of it since.
uint64_t ticks_since(const ProcessTable& before, int64_t pid, const RunningProcess& now,
                     uint64_t RunningProcess::*count = &RunningProcess::used) {
  const RunningProcess* then = before.find(pid);
  if (!then || then->started != now.started) return now.*count;
  return now.*count > then->*count ? now.*count - then->*count : 0;
}

}  // namespace

LoadVerdict judge_load(const LoadSeen& seen) {
  std::vector<const ProcessUse*> counted;
  double cores = 0;
  LoadVerdict out;
  for (const ProcessUse& one : seen.others) {
    if (one.cores <= 0 || (one.system && one.cores < kDaemon)) continue;
    counted.push_back(&one);
    cores += one.cores;
  }
  const auto words = [&] {
    return fmt::format("other work uses {:.1f} of {:.4g} cores: {}", cores, seen.cores, words_of(counted));
  };
  if (cores >= std::max(kBusyLeast, kBusyPart * seen.cores)) {
    out.busy = words();
    for (const ProcessUse* one : counted)
      if (one->pid > 0) out.pids.insert(one->pid);
  } else if (cores >= kBusyLeast) {
    out.note = words();
  } else if (seen.load_average >= std::max(seen.machine_cores, 1.0)) {
    out.note =
        "the load average is above the number of cores, but no process that can be seen uses a core now: it "
        "is left over from work that has ended, or the work is outside this container";
  }
  return out;
}

std::vector<ProcessUse> used_between(const Files& files, const ProcessTable& before,
                                     const ProcessTable& after, const std::set<int64_t>& not_counted) {
  const std::set<int> own = allowed_processors(files, "self");
  const double seconds = seconds_between(before, after);
  std::vector<ProcessUse> out;
  for (const auto& [pid, one] : after.all) {
    const uint64_t ticks = ticks_since(before, pid, one);
    if (ticks == 0 || one.kernel || not_counted.count(pid) || !shares_processors(files, pid, own)) continue;
    const auto uid = user_of(files, pid);
    ProcessUse use;
    use.pid = pid;
    use.user = uid ? "user " + user_name(files, *uid) : "an unknown user";
    use.name = one.comm;
    use.system = uid && (*uid < kFirstUser || *uid == kNobody);
    use.cores = static_cast<double>(ticks) / kTicks / seconds;
    out.push_back(std::move(use));
  }
  return out;
}

double hidden_use(const ProcessTable& before, const ProcessTable& after) {
  uint64_t seen = 0;
  for (const auto& [pid, one] : after.all)
    seen += ticks_since(before, pid, one) + ticks_since(before, pid, one, &RunningProcess::reaped);
  const uint64_t all = after.used > before.used ? after.used - before.used : 0;
  return all > seen ? static_cast<double>(all - seen) / kTicks / seconds_between(before, after) : 0;
}

double physical_cores(const Files& files, const NodeShare& share) {
  std::set<std::string> cores;
  for (const int cpu : online_cpus(files))
    if (std::string core = core_of(files, fmt::format("cpu{}", cpu)); !core.empty())
      cores.insert(std::move(core));
  return cores.empty() ? share.of_cores : static_cast<double>(cores.size());
}

}  // namespace muster
