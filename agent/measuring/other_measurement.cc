#include "agent/measuring/other_measurement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/json_dump.h"
#include "base/split.h"

namespace muster {
namespace {

constexpr size_t kNamedOwners = 3;

std::string option_of(const std::vector<std::string>& argv, const std::string& name) {
  const auto at = std::find(argv.begin(), argv.end(), name);
  return at == argv.end() || at + 1 == argv.end() ? "" : *(at + 1);
}

bool is_agent(const RunningProcess& one) {
  return one.argv.size() > 2 && last_component(one.argv[0]) == "muster-agent" && one.argv[1] == "measure" &&
         one.argv[2] == "--stdin";
}

std::set<int64_t> believed_agents(const Files& files, const ProcessTable& table, int64_t self) {
  std::set<int64_t> out;
  const auto mine = user_of(files, self);
  for (const auto& [pid, one] : table.all)
    if (is_agent(one))
      if (const auto user = user_of(files, pid); user && (*user == 0 || user == mine)) out.insert(pid);
  return out;
}

// Agents older than the lock do not have the option.
bool obeys_the_lock(const RunningProcess& one) {
  return is_agent(one) && !option_of(one.argv, "--session").empty();
}

// "/proc/753/fd/10" -> "10"; "" for any other path. MemoryPrograms executes programs by such a path.
std::string descriptor_of(const std::string& path) {
  const auto parts = split(path, '/');
  const bool of_process = parts.size() == 4 && path.starts_with("/proc/") && parts[2] == "fd" &&
                          pid_of(parts[1]) && pid_of(parts[3]);
  return of_process ? parts[3] : "";
}

// A program that an agent holds in memory or in an unlinked file, with a verb: without one it only answers a
// question (muster-accept-nvml, --version). A plain user cannot read the link of another user's program; its
// name is then that of the descriptor.
bool runs_from_memory(const Files& files, int64_t pid, const RunningProcess& one) {
  const std::string descriptor = descriptor_of(one.argv[0]);
  if (descriptor.empty() || one.argv.size() < 2 || one.argv[1].empty() || one.argv[1][0] == '-') return false;
  const auto file = files.read_link(fmt::format("/proc/{}/exe", pid));
  if (!file.ok()) return one.comm.empty() || one.comm == descriptor;
  return file->starts_with("/memfd:muster") || file->ends_with("/program (deleted)");
}

// muster-accept-nvml reads who holds GPU memory, for milliseconds: no load.
bool measures(const Files& files, int64_t pid, const RunningProcess& one) {
  static const std::set<std::string> programs = {"muster-accept", "muster-accept-gpu", "muster-mpi-check"};
  if (one.argv.empty()) return false;
  if (programs.count(last_component(one.argv[0]))) return true;
  return is_agent(one) ? !obeys_the_lock(one) : runs_from_memory(files, pid, one);
}

// The outermost process of the measurement that `pid` belongs to: what a person would look at, or end.
int64_t origin_of(const Files& files, const ProcessTable& table, int64_t pid) {
  int64_t out = pid;
  for (const int64_t above : ancestors(table, pid))
    if (const auto* one = table.find(above); one && (is_agent(*one) || measures(files, above, *one)))
      out = above;
  return out;
}

std::string program_words(const RunningProcess* one) {
  if (!one) return "";
  if (one->argv.empty()) return " (" + dump_ascii(Json(one->comm)) + ")";
  if (!descriptor_of(one->argv[0]).empty()) return " (a program in memory)";
  return " (" + dump_ascii(Json(last_component(one->argv[0]))) + ")";
}

// "pid 700 ("muster-agent") of user root, login alice, since 2026-11-29T22:10:01Z"
std::string who(const Files& files, const ProcessTable& table, int64_t pid, std::optional<uint32_t> uid) {
  const RunningProcess* one = table.find(pid);
  if (!uid) uid = user_of(files, pid);
  const std::string user = uid ? user_name(files, *uid) : "", login = login_name(files, pid);
  std::string out = pid > 0 ? fmt::format("pid {}{}", pid, program_words(one))
                            : std::string("a process in a different container");
  if (!user.empty()) out += " of user " + user;
  if (!login.empty() && login != user) out += ", login " + login;
  if (const std::string since = one ? started_at(files, *one) : ""; !since.empty()) out += ", since " + since;
  return out;
}

std::string text_of(std::vector<std::string> who) {
  const size_t more = who.size() > kNamedOwners ? who.size() - kNamedOwners : 0;
  who.resize(who.size() - more);
  return fmt::format("another measurement is running: {}{}", fmt::join(who, "; "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace

std::set<int64_t> own_measurement(const Files& files, const ProcessTable& table, int64_t self,
                                  const std::string& session) {
  std::set<int64_t> roots;
  const RunningProcess* me = table.find(self);
  if (self != 0) roots.insert(self);
  // The guard is the same program: this process was forked from it.
  if (const auto* guard = me ? table.find(me->parent) : nullptr; guard && guard->argv == me->argv)
    roots.insert(me->parent);
  if (!session.empty() && session != kNoSession)
    for (const int64_t pid : believed_agents(files, table, self))
      if (option_of(table.find(pid)->argv, "--session") == session) roots.insert(pid);
  return with_descendants(table, std::move(roots));
}

std::set<int64_t> all_measurements(const Files& files, const ProcessTable& table, int64_t self) {
  return with_descendants(table, believed_agents(files, table, self));
}

std::optional<OtherMeasurement> other_measurement(const Files& files, const ProcessTable& table,
                                                  const std::set<int64_t>& own,
                                                  const std::optional<HostClaim::Holder>& holder) {
  OtherMeasurement out;
  std::set<int64_t> origins;
  for (const auto& [pid, one] : table.all) {
    if (own.count(pid) || !measures(files, pid, one)) continue;
    out.pids.insert(pid);
    origins.insert(origin_of(files, table, pid));
  }
  std::vector<std::string> words;
  for (const int64_t pid : origins) words.push_back(who(files, table, pid, {}));
  if (holder && holder->pid == 0 && !holder->uid) {
    words.push_back(fmt::format(
        "a process that cannot be seen has the lock: as root, `ss -xlp` shows it as @{}", kClaimName));
  } else if (holder && !own.count(holder->pid)) {
    const int64_t origin = origin_of(files, table, holder->pid);
    if (holder->pid > 0) out.pids.insert(holder->pid);
    // Its user is the kernel's word, also if the process that took the lock has ended since.
    if (!origins.count(origin))
      words.insert(words.begin(),
                   who(files, table, origin, origin == holder->pid ? holder->uid : std::nullopt));
  }
  if (words.empty()) return {};
  out.text = text_of(std::move(words));
  return out;
}

}  // namespace muster
