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

// Returns the current properties of each unit.
Result<std::map<std::string, Properties>> show(StepContext& context, const std::vector<std::string>& units) {
  std::vector<std::string> argv = {"systemctl", "show", "--no-pager",
                                   "--property=Id,Names,LoadState,ActiveState,UnitFileState,NeedDaemonReload,"
                                   "ActiveEnterTimestampMonotonic"};
  argv.insert(argv.end(), units.begin(), units.end());
  TRY(const std::string out, run_tool(context, argv));
  std::vector<Properties> blocks(1);
  for (const auto& line : lines_of(out)) {
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

Unread unread(const StepContext& context, const Json& params, const Properties& p) {
  const std::string since = property(p, "ActiveEnterTimestampMonotonic");
  if (since.empty() || since == "0") return {};
  // The clocks are read in this order, so that a pause between the two cannot make a file appear newer than
  // the unit.
  const int64_t running = clock_us(CLOCK_MONOTONIC) - std::atoll(since.c_str());
  const int64_t now = clock_us(CLOCK_REALTIME), active = now - running;
  for (const auto& path : list_of(params, "restart_for")) {
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

Difference difference(const StepContext& context, const Json& params, const Properties& p) {
  Difference d;
  const bool masked = bool_of(params, "masked", false);
  const bool is_masked =
      property(p, "LoadState") == "masked" || property(p, "UnitFileState").starts_with("masked");
  const std::string active = property(p, "ActiveState"), file = property(p, "UnitFileState");
  const bool running = active == "active" || active == "activating" || active == "reloading";
  if (masked) {
    const bool absent = property(p, "LoadState") == "not-found" && !running;
    if (!is_masked && !absent) d.mask = true, d.text.add("not masked");
    if (running) d.stop = true, d.text.add("is " + active);
    return d;
  }
  if (is_masked) d.unmask = true, d.text.add("masked");
  d.load = property(p, "NeedDaemonReload") == "yes" || property(p, "LoadState") == "not-found";
  if (params.contains("enabled")) {
    const bool enabled = file == "enabled" || file == "enabled-runtime" || file == "static" ||
                         file == "alias" || file == "indirect" || file == "generated";
    if (bool_of(params, "enabled", true) && !enabled)
      d.enable = true, d.text.add(file.empty() ? "unit not found" : file);
    if (!bool_of(params, "enabled", true) && (file == "enabled" || file == "enabled-runtime"))
      d.disable = true, d.text.add("enabled");
  }
  const bool want_running = bool_of(params, "running", true);
  if (want_running && !running) d.start = true, d.text.add(active.empty() ? "not running" : active);
  if (!want_running && running) d.stop = true, d.text.add("running");
  if (want_running && running) {
    const Unread file_unread = unread(context, params, p);
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

std::vector<std::string> units_of(const Json& params) {
  std::vector<std::string> out;
  for (const auto& name : list_of(params, "names")) out.push_back(unit_name(name));
  return out;
}

CheckResult compare(const StepContext& context, const Json& params,
                    const std::map<std::string, Properties>& found) {
  Diff diff;
  for (const auto& unit : units_of(params)) {
    const auto it = found.find(unit);
    const auto one = difference(context, params, it == found.end() ? Properties{} : it->second).text.result();
    if (one.holds != Holds::yes) diff.add(unit + ": " + one.diff);
  }
  return diff.result();
}

std::vector<Result<CheckResult>> check_many(StepContext& context, const std::vector<Json>& params) {
  std::vector<std::string> units;
  for (const auto& p : params)
    for (const auto& unit : units_of(p)) units.push_back(unit);
  const auto found = show(context, units);
  std::vector<Result<CheckResult>> out;
  for (const auto& p : params) {
    if (found.ok())
      out.push_back(compare(context, p, *found));
    else
      out.push_back(found.error());
  }
  return out;
}

Result<CheckResult> check_service(StepContext& context, const Json& params) {
  return check_many(context, {params}).front();
}

// True if systemd must reload its units to see links that were just made or removed. Newer systemd reports
// this (seen on Debian 13); older systemd keeps the old state of a unit that other units keep loaded
// (nfs-server on Debian 12).
bool missed_links(const StepContext& context, const Json& params, const Properties& p) {
  if (property(p, "NeedDaemonReload") == "yes") return true;
  const Difference d = difference(context, params, p);
  return d.enable || d.disable;
}

Status load_where_needed(StepContext& context, const Json& params, const std::vector<std::string>& units) {
  TRY(const auto found, show(context, units));
  for (const auto& [unit, p] : found) {
    if (!missed_links(context, params, p)) continue;
    TRY(auto out, run_tool(context, {"systemctl", "daemon-reload"}));
    (void)out;
    return Ok{};
  }
  return Ok{};
}

// Before a start, sets an mtime in the future to the current time, so that no further restart follows.
Status date_files(const StepContext& context, const Json& params) {
  for (const auto& path : list_of(params, "restart_for"))
    if (look(context.files, path).modified_us > clock_us(CLOCK_REALTIME)) TRY_(date_now(context.files, path));
  return Ok{};
}

// Runs systemctl once for each verb, with all units that need it.
Status apply_service(StepContext& context, const Json& params) {
  const auto units = units_of(params);
  TRY(const auto found, show(context, units));
  std::map<std::string, std::vector<std::string>> verbs;
  bool load = false;
  for (const auto& unit : units) {
    const auto it = found.find(unit);
    const Difference d = difference(context, params, it == found.end() ? Properties{} : it->second);
    load = load || d.load;
    if (d.unmask) verbs["1 unmask"].push_back(unit);
    if (d.mask) verbs["5 mask"].push_back(unit);
    if (d.enable) verbs["2 enable"].push_back(unit);
    if (d.disable) verbs["2 disable"].push_back(unit);
    if (d.stop) verbs["4 stop"].push_back(unit);
    if (d.start) verbs["3 start"].push_back(unit);
    if (d.restart) verbs["3 restart"].push_back(unit);
  }
  // systemd does not start a unit that failed too often, so failures from before its files were correct are
  // reset.
  if (verbs.count("3 start")) {
    std::vector<std::string> failed_units;
    for (const auto& unit : verbs["3 start"])
      if (const auto it = found.find(unit);
          it != found.end() && property(it->second, "ActiveState") == "failed")
        failed_units.push_back(unit);
    if (!failed_units.empty()) verbs["2 reset-failed"] = failed_units;
  }
  if (load) {
    TRY(auto out, run_tool(context, {"systemctl", "daemon-reload"}));
    (void)out;
  }
  if (verbs.count("3 start") || verbs.count("3 restart")) TRY_(date_files(context, params));
  for (const auto& [verb, names] : verbs) {
    std::vector<std::string> argv = {"systemctl", verb.substr(2)};
    argv.insert(argv.end(), names.begin(), names.end());
    const bool links = verb == "2 enable" || verb == "2 disable";
    // Units were reloaded above if necessary; a second reload of all units takes many seconds on a slow
    // machine.
    if (links) argv.push_back("--no-reload");
    TRY(auto out, run_tool(context, argv, 3 * kMinute));
    (void)out;
    if (links) TRY_(load_where_needed(context, params, names));
  }
  return Ok{};
}

}  // namespace

StepModule service_module() {
  StepModule m;
  m.name = "service";
  m.help =
      "Enables, starts, stops or masks systemd units. A running unit is restarted if a file in `restart_for` "
      "changed after the unit started.";
  m.parameters = Json::array(
      {parameter("names", "list", true, "unit names; .service is added to a name without a suffix"),
       parameter("enabled", "bool", false, "whether the units start at boot; default: unchanged"),
       parameter("running", "bool", false, "whether the units must be running", true),
       parameter("masked", "bool", false,
                 "true: stop and mask the units; a unit that does not exist is accepted", false),
       parameter("restart_for", "list", false, "files that the units read when they start")});
  m.check = check_service;
  m.check_many = check_many;
  m.apply = apply_service;
  return m;
}

}  // namespace muster::steps
