// timer: makes systemd run a program on a schedule, with NAME.service (oneshot) and NAME.timer.
#include <fmt/format.h>

#include <tuple>

#include "agent/core/parameters.h"
#include "agent/steps/files/own_file.h"
#include "agent/steps/services/service_module.h"

namespace muster::steps {
namespace {

// Quotes an argument for systemd: in double quotes, with % and $ doubled.
std::string quoted(const std::string& argument) {
  std::string out = "\"";
  for (const char c : argument) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '%' || c == '$') out += c;
    out += c;
  }
  return out + "\"";
}

struct WantedTimer {
  std::string name;
  Texts argv;
  std::string calendar, after_boot, every, spread;
  bool catch_up = false;
  std::string user, description;
  OwnFile service_file = {}, timer_file = {};
};
MUSTER_PARAMETERS(WantedTimer, required(name, "name of the two units"),
                  required(argv, "program (absolute path) and arguments; no shell"),
                  optional(calendar, "times as for OnCalendar= in systemd.timer(5), e.g. '*-*-* 02:00'"),
                  optional(after_boot, "delay between boot and the first run, e.g. 5min"),
                  optional(every, "delay after each run, e.g. 15min"),
                  optional(spread, "maximum random delay, so that not all nodes act at once"),
                  optional(catch_up, "run at once if a run was missed"),
                  optional(user, "account that the program runs as; default: root"),
                  optional(description, "description of the units; default: the name"))

// Returns the lines for systemd that say when the timer fires.
Result<std::string> when_of(const WantedTimer& want) {
  std::string out;
  for (const auto& [key, property, text] : {std::tuple{"calendar", "OnCalendar", &want.calendar},
                                            std::tuple{"after_boot", "OnBootSec", &want.after_boot},
                                            std::tuple{"every", "OnUnitActiveSec", &want.every},
                                            std::tuple{"spread", "RandomizedDelaySec", &want.spread}}) {
    if (has(*text, "\n"))
      return fail(Code::invalid, fmt::format("timer: '{}' must not contain a line break", key));
    if (!text->empty()) out += fmt::format("{}={}\n", property, *text);
  }
  if (want.calendar.empty() && want.after_boot.empty())
    return fail(Code::invalid,
                "timer: 'calendar' or 'after_boot' is required, otherwise the timer would never start");
  return out + (want.catch_up ? "Persistent=true\n" : "");
}

Status complete_timer(const StepContext&, WantedTimer& want) {
  TRY_(check_name(want.name, "timer"));
  if (want.argv.empty() || !want.argv[0].starts_with('/'))
    return fail(Code::invalid, "timer: 'argv' must begin with an absolute path");
  std::string command;
  for (const auto& argument : want.argv) {
    if (has(argument, "\n")) return fail(Code::invalid, "timer: 'argv' must not contain a line break");
    command += (command.empty() ? "" : " ") + quoted(argument);
  }
  TRY(const std::string when, when_of(want));
  if (want.description.empty()) want.description = want.name;
  if (has(want.description + want.user, "\n"))
    return fail(Code::invalid, "timer: 'description' and 'user' must not contain a line break");
  const std::string folder = "/etc/systemd/system/" + want.name;
  want.service_file = {
      folder + ".service",
      fmt::format("# Written by muster.\n[Unit]\nDescription={}\n\n[Service]\nType=oneshot\nExecStart={}\n{}",
                  want.description, command, want.user.empty() ? "" : "User=" + want.user + "\n"),
      0644};
  want.timer_file = {
      folder + ".timer",
      fmt::format(
          "# Written by muster.\n[Unit]\nDescription={}\n\n[Timer]\n{}\n[Install]\nWantedBy=timers.target\n",
          want.description, when),
      0644};
  return Ok{};
}

WantedService unit_of(const WantedTimer& want) {
  return {.names = {want.name + ".timer"}, .enabled = true, .restart_for = {want.timer_file.path}};
}

// The link that `systemctl enable` makes; during an image build the module makes it itself.
std::string enabling_link(const WantedTimer& want) {
  return "/etc/systemd/system/timers.target.wants/" + want.name + ".timer";
}

Result<CheckResult> check_timer(StepContext& context, const WantedTimer& want) {
  Diff diff;
  add_difference(context.files, want.service_file, diff);
  add_difference(context.files, want.timer_file, diff);
  if (!diff.empty()) return diff.result();
  if (is_booted(context.files)) return check_service(context, unit_of(want));
  return context.files.read_link(enabling_link(want)).ok() ? holds()
                                                           : differs(want.name + ".timer is not enabled");
}

Status apply_timer(StepContext& context, const WantedTimer& want) {
  const bool changed =
      differs_from(context.files, want.service_file) || differs_from(context.files, want.timer_file);
  TRY_(put(context.files, want.service_file));
  TRY_(put(context.files, want.timer_file));
  if (!is_booted(context.files)) {
    const std::string link = enabling_link(want);
    if (context.files.read_link(link).ok()) return Ok{};
    TRY_(context.files.make_directories(link.substr(0, link.rfind('/'))));
    return context.files.symlink(want.timer_file.path, link);
  }
  if (changed) TRY_(reload_units(context));
  return apply_service(context, unit_of(want));
}

}  // namespace

StepModule timer_module() {
  return step_module<WantedTimer>({
      .name = "timer",
      .help = "Runs a program on a schedule: writes the systemd units NAME.service and NAME.timer, and "
              "starts the timer.",
      .check = check_timer,
      .apply = apply_timer,
      .complete = complete_timer,
  });
}

}  // namespace muster::steps
