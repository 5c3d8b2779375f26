#include "agent/measuring/look_first.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "agent/measuring/other_load.h"
#include "agent/measuring/other_measurement.h"
#include "base/json_dump.h"
#include "base/split.h"
#include "base/utf8.h"
#include "base/words.h"
#include "host/rails.h"
#include "sys/locked_memory.h"

namespace muster {
namespace {

constexpr Words<Busy, 5> kWords = {{{Busy::job, "job"},
                                    {Busy::packages, "packages"},
                                    {Busy::measurement, "measurement"},
                                    {Busy::load, "load"},
                                    {Busy::gpu_memory, "gpu_memory"}}};

struct Step {
  std::string job, step;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
// True for a character of a step id: "4711.batch", or "4711+1.0" of a heterogeneous job.
bool in_step_id(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '+' || c == '_';
}

// Parses "slurmstepd: [4711.batch]". `slurmstepd infinity`, without brackets, always runs: it keeps the scope
// of all steps open.
std::optional<Step> slurm_step(const std::vector<std::string>& argv) {
  static const std::string start = "slurmstepd: [";
  const std::string title = argv.empty() ? "" : argv[0];
  const size_t close = title.find(']');
  if (!title.starts_with(start) || close == std::string::npos) return {};
  const std::string id = title.substr(start.size(), close - start.size());
  const size_t dot = std::min(id.find('.'), id.size());
  // Any user may give a process such a title: a title without a valid step id is ignored, and never shown.
  if (id.empty() || !is_digit(id[0]) || !std::all_of(id.begin(), id.end(), in_step_id)) return {};
  return Step{id.substr(0, dot), id.substr(std::min(dot + 1, id.size()))};
}

// Finds the job of this process by its ancestors (srun), or by its cgroup, as when pam_slurm_adopt puts a
// login into the user's job.
std::set<std::string> jobs_of_self(const Files& files, const ProcessTable& table, int64_t self) {
  std::set<std::string> out;
  for (const int64_t pid : ancestors(table, self))
    if (const auto* one = table.find(pid))
      if (const auto step = slurm_step(one->argv)) out.insert(step->job);
  for (const std::string& line : split(files.read("/proc/self/cgroup").value_or(""), '\n')) {
    std::string before;
    for (const std::string& part : split(line.substr(line.rfind(':') + 1), '/')) {
      if (part.starts_with("job_")) out.insert(part.substr(4));
      // Slurm 25.11 names a job's cgroup folder by an identifier of its own.
      if (before.size() >= 16 && before.compare(before.size() - 16, 16, "slurmstepd.scope") == 0)
        out.insert(part.starts_with("job_") ? part.substr(4) : part);
      before = part;
    }
  }
  out.erase("system");  // the folder of `slurmstepd infinity`
  return out;
}

// Finds jobs whose cgroup has processes that are hidden from an unprivileged user. Only cgroup version 2:
// version 1 does not show whether a folder is populated.
std::map<std::string, std::set<std::string>> jobs_by_cgroup(const Files& files) {
  std::map<std::string, std::set<std::string>> out;
  const std::string slice = "/sys/fs/cgroup/system.slice";
  for (const std::string& scope : files.list(slice)) {
    if (scope.find("slurmstepd.scope") == std::string::npos) continue;
    for (const std::string& job : files.list(slice + "/" + scope)) {
      const std::string events = files.read(slice + "/" + scope + "/" + job + "/cgroup.events").value_or("");
      if (job == "system" || !std::all_of(job.begin(), job.end(), in_step_id) ||
          events.find("populated 1") == std::string::npos)
        continue;
      auto& steps = out[job.starts_with("job_") ? job.substr(4) : job];
      for (const std::string& step : files.list(slice + "/" + scope + "/" + job))
        if (step.starts_with("step_")) steps.insert(step.substr(5));
    }
  }
  return out;
}

void look_at_jobs(const Files& files, const ProcessTable& table, bool hidden, HostLook& out) {
  std::map<std::string, std::set<std::string>> jobs;
  std::map<std::string, std::set<int64_t>> pids;
  std::map<std::string, std::string> forgers;  // slurmstepd itself is root's
  if (hidden) jobs = jobs_by_cgroup(files);
  for (const auto& [pid, one] : table.all)
    if (const auto step = slurm_step(one.argv)) {
      jobs[step->job].insert(step->step);
      pids[step->job].insert(pid);
      if (const auto user = user_of(files, pid); user && *user != 0)
        forgers[step->job] = fmt::format(", as pid {} of user {} claims", pid, user_name(files, *user));
    }
  for (auto& [job, steps] : jobs) {
    if (out.own_jobs.count(job)) continue;
    steps.erase("");
    out.busy.push_back(
        {Busy::job,
         fmt::format("Slurm job {} is running{}{}", first_bytes(job, 40),
                     steps.empty() ? "" : fmt::format(" (steps {})", fmt::join(steps, ", ")), forgers[job]),
         pids[job]});
  }
}

// The program that a process runs (the script if it runs one), and the arguments after that name.
struct Program {
  std::string name;
  std::vector<std::string> arguments;
};

Program program_of(const std::vector<std::string>& argv) {
  static const std::set<std::string> shells = {"sh", "bash", "dash", "perl", "platform-python"};
  size_t at = 0;
  const std::string first = last_component(argv[0]);
  if (shells.count(first) || first.starts_with("python")) {
    size_t script = 1;
    while (script < argv.size() && argv[script][0] == '-') ++script;
    if (script < argv.size()) at = script;
  }
  return {last_component(argv[at]), {argv.begin() + static_cast<std::ptrdiff_t>(at) + 1, argv.end()}};
}

// For apt and similar programs: true if the command only reads. Commands that are not listed count as work.
bool is_query(const std::vector<std::string>& arguments) {
  static const std::set<std::string> queries = {
      "list",      "search",    "show",         "info",     "policy",       "depends",
      "rdepends",  "madison",   "showpkg",      "pkgnames", "indextargets", "why",
      "why-not",   "changelog", "check-update", "repolist", "repos",        "lr",
      "repoquery", "provides",  "whatprovides", "history",  "help",         "check"};
  const auto command =
      std::find_if(arguments.begin(), arguments.end(), [](const std::string& one) { return one[0] != '-'; });
  return command == arguments.end() || queries.count(*command) > 0;
}

bool is_dpkg_work(const std::vector<std::string>& arguments) {
  static const std::set<std::string> actions = {
      "-i",      "--install",       "--unpack", "--configure",    "-r",           "--remove", "-P",
      "--purge", "--triggers-only", "-A",       "--record-avail", "--clear-avail"};
  return std::any_of(arguments.begin(), arguments.end(),
                     [](const std::string& one) { return actions.count(one) > 0; });
}

// "-Uvh", "--upgrade"; a query is "-qi".
bool is_rpm_work(const std::vector<std::string>& arguments) {
  static const std::set<std::string> actions = {"--install",   "--upgrade",   "--freshen", "--erase",
                                                "--reinstall", "--rebuilddb", "--import",  "--restore"};
  return std::any_of(arguments.begin(), arguments.end(), [](const std::string& one) {
    const bool letter =
        one.size() > 1 && one[0] == '-' && std::string("iUFe").find(one[1]) != std::string::npos;
    return letter || actions.count(one) > 0;
  });
}

// unattended-upgrade-shutdown does not count: it only waits for a shutdown, and always runs on Ubuntu and
// usually on Debian.
bool is_package_work(const Program& program) {
  static const std::set<std::string> managers = {"apt", "apt-get", "aptitude", "dnf",      "dnf5",    "dnf-3",
                                                 "yum", "tdnf",    "zypper",   "microdnf", "apt-mark"};
  static const std::set<std::string> always = {"unattended-upgrade", "unattended-upgrades",
                                               "apt.systemd.daily",  "do-release-upgrade",
                                               "dnf-automatic",      "yum-cron",
                                               "rpm-ostree-upgrade", "dkms"};
  if (always.count(program.name)) return true;
  if (managers.count(program.name)) return !is_query(program.arguments);
  if (program.name == "dpkg") return is_dpkg_work(program.arguments);
  return program.name == "rpm" && is_rpm_work(program.arguments);
}

void look_at_packages(const Files& files, const ProcessTable& table, HostLook& out) {
  BusyReason reason{Busy::packages, "", {}};
  std::set<std::string> names, users;
  for (const auto& [pid, one] : table.all) {
    if (one.argv.empty()) continue;
    const Program program = program_of(one.argv);
    if (!is_package_work(program)) continue;
    names.insert(program.name);
    reason.pids.insert(pid);
    if (const auto user = user_of(files, pid); user && *user != 0) users.insert(user_name(files, *user));
  }
  if (names.empty()) return;
  reason.text = fmt::format("{} {} running (pid {}{})", fmt::join(names, ", "),
                            names.size() == 1 ? "is" : "are", fmt::join(reason.pids, ", "),
                            users.empty() ? "" : fmt::format(", of user {}", fmt::join(users, ", ")));
  out.busy.push_back(std::move(reason));
}

void look_at_measurements(const Files& files, const ProcessTable& table, const LookInput& input,
                          HostLook& out) {
  const auto own = own_measurement(files, table, input.self, input.session);
  if (auto other = other_measurement(files, table, own, input.holder))
    out.busy.push_back({Busy::measurement, std::move(other->text), std::move(other->pids)});
  if (!input.no_lock.empty()) out.not_looked_at.push_back("other measurements: " + input.no_lock);
}

// Measurements count as such, and the login, sudo and shell that this process came through work for it.
std::set<int64_t> not_load(const Files& files, const ProcessTable& table, const LookInput& input) {
  auto out = all_measurements(files, table, input.self);
  out.merge(own_measurement(files, table, input.self, input.session));
  for (const int64_t pid : ancestors(table, input.self)) out.insert(pid);
  return out;
}

void look_at_load(const Files& files, const ProcessTable& table, const LookInput& input, HostLook& out) {
  const NodeShare& share = out.share;
  if (share.of_cores == 0 || table.uptime <= input.earlier.uptime || input.earlier.uptime <= 0) {
    out.not_looked_at.push_back("load: the number of processors, or what uses them, could not be read");
    return;
  }
  LoadSeen seen;
  seen.machine_cores = physical_cores(files, share);
  seen.cores = seen.machine_cores * share.cores / share.of_cores;
  seen.load_average = std::strtod(files.read_line("/proc/loadavg").c_str(), nullptr);
  seen.others = used_between(files, input.earlier, table, not_load(files, table, input));
  // What is counted for the whole machine says nothing about a share.
  const bool hidden = !files.exists("/proc/1/cmdline"), whole = share.cores >= share.of_cores;
  if (hidden && whole)
    seen.others.push_back(
        {0, "users whose processes are hidden", "", false, hidden_use(input.earlier, table)});
  LoadVerdict verdict = judge_load(seen);
  if (!verdict.busy.empty())
    out.busy.push_back({Busy::load, std::move(verdict.busy), std::move(verdict.pids)});
  if (!verdict.note.empty()) out.notes.push_back(std::move(verdict.note));
}

std::string amount_of(const std::optional<uint64_t>& mib) {
  return mib ? fmt::format("{} MiB", *mib) : std::string("memory");
}

// A process that is not found may be in a different PID namespace, or it has ended, but the driver has not
// freed its memory yet.
std::string name_of(const Files& files, int64_t pid, bool hidden) {
  const std::string name = files.read_line(fmt::format("/proc/{}/comm", pid));
  if (!name.empty()) return dump_ascii(Json(name));
  return hidden ? "another user's process" : "process not found";
}

void look_at_gpus(const Files& files, const LookInput& input, bool hidden, HostLook& out) {
  std::vector<std::string> words;
  BusyReason reason{Busy::gpu_memory, "", {}};
  for (const GpuHolder& one : input.holders) {
    if (one.pid == input.self && input.self != 0) continue;
    reason.pids.insert(one.pid);
    words.push_back(fmt::format("{} of GPU {} by pid {}, {}", amount_of(one.mib), first_bytes(one.gpu, 60),
                                one.pid, name_of(files, one.pid, hidden)));
  }
  std::sort(words.begin(), words.end());
  if (!input.gpus_looked_at) out.not_looked_at.push_back("GPU memory: the driver did not respond");
  if (words.empty()) return;
  reason.text = fmt::format("in use: {}", fmt::join(words, "; "));
  out.busy.push_back(std::move(reason));
}

}  // namespace

std::string_view to_string(Busy kind) { return word_of(kWords, kind); }

HostLook look_first(const Files& files, const LookInput& input) {
  HostLook out;
  out.share = node_share(files);
  out.share.gpus = input.gpus;
  out.share.of_gpus = input.of_gpus;
  out.locked_bytes = locked_memory(files);
  out.rdma_ports = fabric_ports(files);
  const ProcessTable table = process_table(files);
  out.own_jobs = jobs_of_self(files, table, input.self);
  // With `hidepid` a plain user can only see its own processes, and process 1 is never one of them.
  const bool hidden = !files.exists("/proc/1/cmdline");
  if (hidden) out.not_looked_at.push_back("processes of other users: /proc hides them (hidepid)");
  look_at_jobs(files, table, hidden, out);
  look_at_packages(files, table, out);
  look_at_measurements(files, table, input, out);
  look_at_load(files, table, input, out);
  look_at_gpus(files, input, hidden, out);
  return out;
}

Json to_json(const HostLook& look) {
  Json busy = Json::array();
  for (const BusyReason& one : look.busy)
    busy.push_back({{"kind", to_string(one.kind)}, {"text", one.text}, {"pids", one.pids}});
  Json out = {{"busy", busy},
              {"not_looked_at", look.not_looked_at},
              {"notes", look.notes},
              {"share", to_json(look.share)},
              {"own_jobs", look.own_jobs},
              {"rdma_ports", look.rdma_ports}};
  if (look.locked_bytes)
    out["locked_memory_bytes"] =
        *look.locked_bytes == kUnlimited ? Json("unlimited") : Json(*look.locked_bytes);
  return out;
}

}  // namespace muster
