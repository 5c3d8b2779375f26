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

// Skips muted problems: an operator has acknowledged them.
Result<std::string> ceph_answer(const std::string& out) {
  TRY(Json health, parse_json(out));
  const auto checks = health.is_object() ? health.find("checks") : health.end();
  if (!health.is_object() || checks == health.end() || !checks->is_object())
    return fail(Code::failed, "ceph does not report its state");
  Json reported = Json::object();
  for (const auto& [code, found] : checks->items())
    if (found.is_object() && !is_true_at(found, "muted")) reported[code] = found;
  return ceph_wrong({{"checks", reported}}, true);
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

std::string ceph_wrong(const Json& health, bool whole) {
  steps::Diff diff;
  const auto checks = health.find("checks");
  if (checks == health.end() || !checks->is_object()) return "";
  for (const auto& [code, found] : checks->items()) {
    const bool bad = steps::text_of(found, "severity") == "HEALTH_ERR" || code == "PG_AVAILABILITY" ||
                     (whole && code != kHarmless);
    const Json& summary = steps::object_of(found, "summary");
    if (bad) diff.add(fmt::format("{}: {}", code, steps::text_of(summary, "message")));
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
