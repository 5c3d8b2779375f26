// service: keeps systemd units enabled, running or masked as declared, and restarts those that started before
// a file that they read was last changed.
//
// One `systemctl show` reads all units of all steps that are checked together.
#include <time.h>

#include <map>

#include "agent/steps/accounts.h"
#include "agent/steps/services/service_module.h"
#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

using Properties = std::map<std::string, std::string>;

std::string unit_name(const std::string& name) {
  return name.find('.') == std::string::npos ? name + ".service" : name;
}

Result<std::map<std::string, Properties>> show(StepContext& context, const std::vector<std::string>& units) {
  std::vector<std::string> argv = {"systemctl", "show", "--no-pager",
                                   "--property=Id,Names,LoadState,ActiveState,UnitFileState,NeedDaemonReload,"
                                   "ActiveEnterTimestampMonotonic"};
  argv.insert(argv.end(), units.begin(), units.end());
  TRY(const std::string out, run_tool(context, argv));
  std::vector<Properties> blocks(1);
  for (const auto& line : split_lines(out)) {
    if (line.empty())
      blocks.emplace_back();
    else if (const auto equals = line.find('='); equals != std::string::npos)
      blocks.back()[line.substr(0, equals)] = line.substr(equals + 1);
  }
  std::map<std::string, Properties> found;
  for (const auto& block : blocks) {
    const auto id = block.find("Id");
    if (id == block.end()) continue;
    found[id->second] = block;
    if (const auto names = block.find("Names");
        names != block.end())  // aliases: other distributions use chronyd.service
      for (const auto& alias : split(names->second, ' ')) found[alias] = block;
  }
  return found;
}

std::string property(const Properties& p, const char* name) {
  const auto it = p.find(name);
  return it == p.end() ? "" : it->second;
}

int64_t clock_us(clockid_t clock) {
  timespec t = {};
  clock_gettime(clock, &t);
  return static_cast<int64_t>(t.tv_sec) * 1000000 + t.tv_nsec / 1000;
}

// A file that a running unit may not have read. `ahead`: its mtime is in the future, because it was written
// before a clock that ran fast was corrected. Such a file would stay newer than every restart until the clock
// catches up.
struct Unread {
  std::string path = {};
  bool ahead = false;
};

Unread unread(const StepContext& context, const WantedService& want, const Properties& p) {
  const std::string since = property(p, "ActiveEnterTimestampMonotonic");
  if (since.empty() || since == "0") return {};
  // In this order, a pause between the two clocks cannot make a file appear newer than the unit.
  const int64_t running = clock_us(CLOCK_MONOTONIC) - std::atoll(since.c_str());
  const int64_t now = clock_us(CLOCK_REALTIME), active = now - running;
  for (const auto& path : want.restart_for) {
    const int64_t modified = look(context.files, path).modified_us;
    if (modified > active) return {path, modified > now};
  }
  return {};
}

struct Difference {
  bool load = false, start = false, stop = false, restart = false, enable = false, disable = false,
       mask = false, unmask = false;
  Diff text;
};

Difference difference(const StepContext& context, const WantedService& want, const Properties& p) {
  Difference d;
  const bool is_masked =
      property(p, "LoadState") == "masked" || property(p, "UnitFileState").starts_with("masked");
  const std::string active = property(p, "ActiveState"), file = property(p, "UnitFileState");
  const bool running = active == "active" || active == "activating" || active == "reloading";
  if (want.masked) {
    const bool absent = property(p, "LoadState") == "not-found" && !running;
    if (!is_masked && !absent) d.mask = true, d.text.add("not masked");
    if (running) d.stop = true, d.text.add("is " + active);
    return d;
  }
  if (is_masked) d.unmask = true, d.text.add("masked");
  d.load = property(p, "NeedDaemonReload") == "yes" || property(p, "LoadState") == "not-found";
  if (want.enabled) {
    const bool enabled = file == "enabled" || file == "enabled-runtime" || file == "static" ||
                         file == "alias" || file == "indirect" || file == "generated";
    if (*want.enabled && !enabled) d.enable = true, d.text.add(file.empty() ? "unit not found" : file);
    if (!*want.enabled && (file == "enabled" || file == "enabled-runtime"))
      d.disable = true, d.text.add("enabled");
  }
  if (want.running && !running) d.start = true, d.text.add(active.empty() ? "not running" : active);
  if (!want.running && running) d.stop = true, d.text.add("running");
  if (want.running && running) {
    const Unread file_unread = unread(context, want, p);
    if (file_unread.ahead)
      d.restart = true,
      d.text.add(file_unread.path +
                 " has an mtime in the future, so the running service may not have read it");
    else if (!file_unread.path.empty())
      d.restart = true, d.text.add(file_unread.path + " is newer than the running service");
    else if (property(p, "NeedDaemonReload") == "yes")
      d.restart = true, d.text.add("its unit file changed");
  }
  return d;
}

std::vector<std::string> units_of(const WantedService& want) {
  std::vector<std::string> out;
  for (const auto& name : want.names) out.push_back(unit_name(name));
  return out;
}

CheckResult compare(const StepContext& context, const WantedService& want,
                    const std::map<std::string, Properties>& found) {
  Diff diff;
  for (const auto& unit : units_of(want)) {
    const auto it = found.find(unit);
    const auto one = difference(context, want, it == found.end() ? Properties{} : it->second).text.result();
    if (one.holds != Holds::yes) diff.add(unit + ": " + one.diff);
  }
  return diff.result();
}

std::vector<Result<CheckResult>> check_many(StepContext& context, const std::vector<Json>& params) {
  std::vector<Result<WantedService>> all;
  std::vector<std::string> units;
  for (const auto& p : params) {
    all.push_back(read_parameters<WantedService>("service", p));
    if (!all.back().ok()) continue;
    for (const auto& unit : units_of(*all.back())) units.push_back(unit);
  }
  const auto found = show(context, units);
  std::vector<Result<CheckResult>> out;
  for (const auto& want : all) {
    if (want.ok() && found.ok())
      out.push_back(compare(context, *want, *found));
    else
      out.push_back(want.ok() ? found.error() : want.error());
  }
  return out;
}

// True if systemd must reload its units to see links that were just made or removed. Newer systemd reports
// this (seen on Debian 13); older systemd keeps the old state of a unit that other units keep loaded
// (nfs-server on Debian 12).
bool missed_links(const StepContext& context, const WantedService& want, const Properties& p) {
  if (property(p, "NeedDaemonReload") == "yes") return true;
  const Difference d = difference(context, want, p);
  return d.enable || d.disable;
}

Status load_where_needed(StepContext& context, const WantedService& want,
                         const std::vector<std::string>& units) {
  TRY(const auto found, show(context, units));
  for (const auto& [unit, p] : found) {
    if (!missed_links(context, want, p)) continue;
    TRY_(run_tool(context, {"systemctl", "daemon-reload"}));
    return Ok{};
  }
  return Ok{};
}

// Before a start, sets an mtime in the future to the current time, so that no further restart follows.
Status date_files(const StepContext& context, const WantedService& want) {
  for (const auto& path : want.restart_for)
    if (look(context.files, path).modified_us > clock_us(CLOCK_REALTIME)) TRY_(context.files.date_now(path));
  return Ok{};
}

}  // namespace

Result<CheckResult> check_service(StepContext& context, const WantedService& want) {
  TRY(const auto found, show(context, units_of(want)));
  return compare(context, want, found);
}

// Runs systemctl once for each verb, with all units that need it.
Status apply_service(StepContext& context, const WantedService& want) {
  const auto units = units_of(want);
  TRY(const auto found, show(context, units));
  std::map<std::string, std::vector<std::string>> verbs;
  bool load = false;
  for (const auto& unit : units) {
    const auto it = found.find(unit);
    const Difference d = difference(context, want, it == found.end() ? Properties{} : it->second);
    load = load || d.load;
    if (d.unmask) verbs["1 unmask"].push_back(unit);
    if (d.mask) verbs["5 mask"].push_back(unit);
    if (d.enable) verbs["2 enable"].push_back(unit);
    if (d.disable) verbs["2 disable"].push_back(unit);
    if (d.stop) verbs["4 stop"].push_back(unit);
    if (d.start) verbs["3 start"].push_back(unit);
    if (d.restart) verbs["3 restart"].push_back(unit);
  }
  // systemd does not start a unit that failed too often, perhaps before its files were right: reset that.
  if (verbs.count("3 start")) {
    std::vector<std::string> failed_units;
    for (const auto& unit : verbs["3 start"])
      if (const auto it = found.find(unit);
          it != found.end() && property(it->second, "ActiveState") == "failed")
        failed_units.push_back(unit);
    if (!failed_units.empty()) verbs["2 reset-failed"] = failed_units;
  }
  if (load) TRY_(run_tool(context, {"systemctl", "daemon-reload"}));
  if (verbs.count("3 start") || verbs.count("3 restart")) TRY_(date_files(context, want));
  for (const auto& [verb, names] : verbs) {
    std::vector<std::string> argv = {"systemctl", verb.substr(2)};
    argv.insert(argv.end(), names.begin(), names.end());
    const bool links = verb == "2 enable" || verb == "2 disable";
    // Units were reloaded above if necessary; a second reload takes many seconds on a slow machine.
    if (links) argv.push_back("--no-reload");
    TRY_(run_tool(context, argv));
    if (links) TRY_(load_where_needed(context, want, names));
  }
  return Ok{};
}

StepModule service_module() {
  StepModule m = step_module<WantedService>({
      .name = "service",
      .help = "Enables, starts, stops or masks systemd units. A running unit is restarted if a file in "
              "`restart_for` changed after the unit started.",
      .check = check_service,
      .apply = apply_service,
  });
  m.check_many = check_many;
  return m;
}

}  // namespace muster::steps
