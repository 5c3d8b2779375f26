#include "agent/storage/health.h"

#include <fmt/format.h>

#include <string_view>

#include "agent/steps/step_modules.h"
#include "base/json_at.h"

namespace muster {
namespace {

// A warning that is unrelated to the data: Debian 13's manager cannot load most of its Python modules (PyO3
// and subinterpreters).
constexpr const char* kHarmless = "MGR_MODULE_DEPENDENCY";

// On the node of a former master, this file still exists, but its service has no processes.
constexpr const char* kMaster = "/etc/mfs/mfsmaster.cfg";
constexpr const char* kMastersProcesses = "/sys/fs/cgroup/system.slice/moosefs-master.service/cgroup.procs";

// With this key, a node may query the monitors. Nodes that only store data have the key as well, but are
// skipped, because all would report the same.
constexpr const char* kAdminKey = "/etc/ceph/muster-admin.secret";
constexpr const char* kMonitors = "/var/lib/ceph/mon";

// True if slow operations are those of monitors alone: "2 slow ops, oldest one blocked for 466 sec, daemons
// [mon.a,mon.b] have slow ops." Ceph abbreviates the list from 11 daemons on; then it is false.
bool only_monitors_are_slow(const std::string& message) {
  const auto names = message.find(" sec, ");
  if (names == std::string::npos) return false;
  size_t monitors = 0;
  for (const auto& word : split(message.substr(names + 6), " ,[]")) {
    if (word == "daemons" || word == "has" || word == "have" || word == "slow" || word.starts_with("ops"))
      continue;
    if (!word.starts_with("mon.")) return false;
    ++monitors;
  }
  return monitors > 0;
}

bool counts(const std::string& code, const Json& found, const std::string& message, CephScope scope) {
  if (code == kHarmless) return false;
  if (scope == CephScope::shown) return !is_true_at(found, "muted");
  if (steps::text_of(found, "severity") == "HEALTH_ERR" || code == "PG_AVAILABILITY") return true;
  if (scope == CephScope::some_members) return false;
  // A monitor that was busy when it forwarded a message to the leader may list it as open until it is
  // restarted, although all is well.
  return code != "SLOW_OPS" || !only_monitors_are_slow(message);
}

Result<std::string> ceph_answer(const std::string& out) {
  TRY(const Json health, parse_json(out));
  if (!health.is_object() || !health.contains("checks") || !health["checks"].is_object())
    return fail(Code::failed, "ceph does not report its state");
  return ceph_wrong(health, CephScope::shown);
}

}  // namespace

Result<std::string> moosefs_wrong(const std::string& out) {
  steps::Diff diff;
  size_t classes = 0;
  for (const auto& line : split_lines(out)) {
    const auto f = split(line, '|');
    if (f.size() < 3 || f[0] != "all chunks matrix:") continue;
    for (const std::string bad : {"missing", "endangered", "undergoal"})
      if (f[1] == "chunkclass " + bad + ":" && ++classes && f[2] != "0")
        diff.add(fmt::format("{} chunks are {}", f[2], bad));
  }
  if (classes != 3) return fail(Code::failed, "the master's answer does not contain the state of its chunks");
  return diff.result().diff;
}

std::string ceph_wrong(const Json& health, CephScope scope) {
  steps::Diff diff;
  const auto checks = health.find("checks");
  if (checks == health.end() || !checks->is_object()) return "";
  for (const auto& [code, found] : checks->items()) {
    const std::string message = steps::text_of(steps::object_of(found, "summary"), "message");
    if (counts(code, found, message, scope)) diff.add(fmt::format("{}: {}", code, message));
  }
  return diff.result().diff;
}

std::vector<HealthQuestion> health_questions(const Files& files) {
  std::vector<HealthQuestion> out;
  if (files.exists(kMaster) && !files.read_line(kMastersProcesses).empty())
    out.push_back({"moosefs", {"mfscli", "-H", "127.0.0.1", "-SIN", "-n", "-s", "|"}, moosefs_wrong});
  if (files.exists(kAdminKey) && !files.list(kMonitors).empty())
    out.push_back({"ceph", {"ceph", "--connect-timeout", "15", "health", "-f", "json"}, ceph_answer});
  return out;
}

}  // namespace muster
