#include "agent/steps/two_phase.h"

#include <charconv>
#include <chrono>
#include <thread>

#include "agent/steps/accounts.h"
#include "agent/steps/step_modules.h"
#include "agent/steps/tcp.h"
#include "base/json_dump.h"

namespace muster::steps {
namespace {

constexpr const char* kFolder = "/var/lib/muster/rollback";
constexpr std::string_view kSuffix = ".json";
// A rollback restores files and then runs its programs, each for at most two minutes.
constexpr auto kLongestRollback = std::chrono::minutes(5);

std::string record_path(const std::string& name) {
  return std::string(kFolder) + "/" + name + std::string(kSuffix);
}
std::string unit_of(const std::string& name) { return "muster-rollback-" + name; }

// True if one of these units is active, activating or deactivating (for the last two, systemctl exits as for
// an inactive unit). False if systemd does not respond.
bool any_active(Process& process, const std::vector<std::string>& units) {
  Command query;
  query.argv = {"systemctl", "is-active"};
  query.argv.insert(query.argv.end(), units.begin(), units.end());
  const auto answer = process.run(query);
  return answer.ok() && (answer->ok() || answer->out.find("activating") != std::string::npos);
}

// Stops the timer and waits for a rollback that it has started: until that has finished, it may overwrite new
// files with old ones, and systemd accepts no new timer of this name.
Status end_timer(Process& process, const std::string& name) {
  Command stop;
  stop.argv = {"systemctl", "stop", unit_of(name) + ".timer"};
  // Ignored: the timer may not exist, and if systemd does not respond, the caller rolls the change back.
  (void)process.run(stop).ok();
  const auto until = std::chrono::steady_clock::now() + kLongestRollback;
  while (any_active(process, {unit_of(name) + ".service"})) {
    if (std::chrono::steady_clock::now() >= until)
      return fail(Code::timeout, "an earlier change to " + name + " is still being rolled back (" +
                                     unit_of(name) + ".service)");
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  return Ok{};
}

Error taken_back(const std::string& name) {
  return fail(Code::failed,
              "the change to " + name + " was not confirmed in time and was rolled back by its timer");
}

}  // namespace

Status arm(StepContext& context, const TwoPhase& change) {
  // The timer of an earlier attempt is stopped first: it would fire too early, and its rollback would remove
  // the record.
  TRY_(end_timer(context.process, change.name));
  // An existing record has the state before an earlier unconfirmed attempt: that is the state to restore.
  if (!context.files.exists(record_path(change.name))) {
    Json saved = Json::object();
    for (const auto& path : change.files) {
      const FileState state = look(context.files, path);
      saved[path] = nullptr;
      if (!state.exists) continue;
      TRY(const std::string content, context.files.read(path));
      saved[path] = {{"content", content}, {"mode", state.mode}};
    }
    const Json record = {{"files", saved}, {"after", change.after}};
    TRY_(context.files.write(record_path(change.name), dump_json(record), 0600));
  }
  TRY_(run_tool(context, {"systemd-run", "--quiet", "--collect", "--unit=" + unit_of(change.name),
                          "--on-active=" + std::to_string(change.seconds), "--timer-property=AccuracySec=1s",
                          "/usr/sbin/muster-agent", "rollback", change.name}));
  return Ok{};
}

Status confirm(StepContext& context, const std::string& name) {
  const auto stopped = run_tool(context, {"systemctl", "stop", unit_of(name) + ".timer"});
  // If the timer has fired, the rollback is done or under way. After the stop it can no longer fire.
  if (any_active(context.process, {unit_of(name) + ".service"}) || !is_armed(context.files, name))
    return taken_back(name);
  if (!stopped.ok()) return stopped.error();
  return context.files.remove(record_path(name));
}

Status roll_back(Files& files, Process& process, const std::string& name) {
  TRY(const std::string text, files.read(record_path(name)));
  TRY(const Json record, parse_json(text));
  for (const auto& [path, saved] : record.at("files").items()) {
    if (saved.is_null())
      TRY_(files.remove(path));
    else
      TRY_(files.write(path, saved.at("content").get<std::string>(), saved.at("mode").get<unsigned>()));
  }
  Status worst = Ok{};
  for (const auto& argv : record.at("after")) {
    Command command;
    command.argv = argv.get<std::vector<std::string>>();
    command.deadline = 2 * kMinute;
    if (auto out = run_ok(process, command); !out.ok()) worst = out.error();
  }
  TRY_(files.remove(record_path(name)));
  return worst;
}

std::vector<RolledBack> roll_back_orphans(Files& files, Process& process) {
  std::vector<RolledBack> out;
  for (const auto& file : files.list(kFolder)) {
    // Leftovers of an interrupted write have a different suffix.
    if (file.size() <= kSuffix.size() || !file.ends_with(kSuffix)) continue;
    const std::string name = file.substr(0, file.size() - kSuffix.size());
    if (any_active(process, {unit_of(name) + ".timer", unit_of(name) + ".service"})) continue;
    out.push_back({name, roll_back(files, process, name)});
  }
  return out;
}

bool is_armed(const Files& files, const std::string& name) { return files.exists(record_path(name)); }

Status in_two_phases(StepContext& context, const TwoPhase& phases, const std::function<Status()>& change) {
  TRY_(arm(context, phases));
  const Status changed = change();
  if (changed.ok()) return confirm(context, phases.name);
  // Either the timer's rollback or this code restores the files, never both.
  Status back = end_timer(context.process, phases.name);
  if (back.ok() && !is_armed(context.files, phases.name))
    return fail(changed.error().code, changed.error().message + "; " + taken_back(phases.name).message);
  if (back.ok()) back = roll_back(context.files, context.process, phases.name);
  if (!back.ok())
    return fail(changed.error().code,
                changed.error().message + "; rolling it back failed: " + back.error().message);
  return fail(changed.error().code, changed.error().message + "; rolled back");
}

Status reach(const std::string& controller, DurationMs deadline) {
  std::string text = controller;
  if (const auto scheme = text.find("://"); scheme != std::string::npos) text = text.substr(scheme + 3);
  text = text.substr(0, text.find('/'));
  const auto colon = text.rfind(':');
  uint16_t port = 0;
  if (colon != std::string::npos) std::from_chars(text.data() + colon + 1, text.data() + text.size(), port);
  if (port == 0) return fail(Code::invalid, "'" + controller + "' is not an address with a port");
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(deadline);
  for (;;) {
    TRY(const TcpAnswer answer, tcp_probe(host, port, 3 * kSecond));
    if (answer.state == TcpState::open) return Ok{};
    if (std::chrono::steady_clock::now() >= until)
      return fail(Code::failed, "the controller at " + text +
                                    " cannot be reached from this node: the port is " +
                                    std::string(to_string(answer.state)));
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
}

}  // namespace muster::steps
