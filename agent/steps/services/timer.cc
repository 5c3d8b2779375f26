// timer: makes systemd run a program on a schedule, with NAME.service (oneshot) and NAME.timer.
#include <fmt/format.h>

#include "agent/steps/files/own_file.h"

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

struct Wanted {
  std::string name;
  OwnFile service, timer;
};

Result<Wanted> wanted(const Json& params) {
  Wanted out;
  out.name = text_of(params, "name");
  TRY_(check_name(out.name, "timer"));
  const auto argv = list_of(params, "argv");
  if (argv.empty() || argv[0].empty() || argv[0][0] != '/')
    return fail(Code::invalid, "timer: 'argv' must begin with an absolute path");
  std::string command, when;
  for (const auto& argument : argv) {
    if (argument.find('\n') != std::string::npos)
      return fail(Code::invalid, "timer: 'argv' must not contain a line break");
    command += (command.empty() ? "" : " ") + quoted(argument);
  }
  for (const auto& [key, property] :
       {std::pair{"calendar", "OnCalendar"}, std::pair{"after_boot", "OnBootSec"},
        std::pair{"every", "OnUnitActiveSec"}, std::pair{"spread", "RandomizedDelaySec"}}) {
    const auto text = text_of(params, key);
    if (text.find('\n') != std::string::npos)
      return fail(Code::invalid, fmt::format("timer: '{}' must not contain a line break", key));
    if (!text.empty()) when += fmt::format("{}={}\n", property, text);
  }
  if (text_of(params, "calendar").empty() && text_of(params, "after_boot").empty())
    return fail(Code::invalid,
                "timer: 'calendar' or 'after_boot' is required, otherwise the timer would never start");
  if (bool_of(params, "catch_up", false)) when += "Persistent=true\n";
  const std::string about = text_of(params, "description", out.name), user = text_of(params, "user");
  if ((about + user).find('\n') != std::string::npos)
    return fail(Code::invalid, "timer: 'description' and 'user' must not contain a line break");
  const std::string folder = "/etc/systemd/system/" + out.name;
  out.service = {
      folder + ".service",
      fmt::format("# Written by muster.\n[Unit]\nDescription={}\n\n[Service]\nType=oneshot\nExecStart={}\n{}",
                  about, command, user.empty() ? "" : "User=" + user + "\n"),
      0644};
  out.timer = {
      folder + ".timer",
      fmt::format(
          "# Written by muster.\n[Unit]\nDescription={}\n\n[Timer]\n{}\n[Install]\nWantedBy=timers.target\n",
          about, when),
      0644};
  return out;
}

// Parameters for the service module, which enables and starts the timer unit.
Json unit_params(const Wanted& want) {
  return {{"names", {want.name + ".timer"}}, {"enabled", true}, {"restart_for", {want.timer.path}}};
}

// The link that `systemctl enable` makes; during an image build the module makes it itself.
std::string enabling_link(const Wanted& want) {
  return "/etc/systemd/system/timers.target.wants/" + want.name + ".timer";
}

Result<CheckResult> check_timer(StepContext& context, const Json& params) {
  TRY(const Wanted want, wanted(params));
  Diff diff;
  add_difference(context.files, want.service, diff);
  add_difference(context.files, want.timer, diff);
  if (!diff.empty()) return diff.result();
  if (is_booted(context.files)) return context.module("service")->check(context, unit_params(want));
  return context.files.read_link(enabling_link(want)).ok() ? holds()
                                                           : differs(want.name + ".timer is not enabled");
}

Status apply_timer(StepContext& context, const Json& params) {
  TRY(const Wanted want, wanted(params));
  const bool changed = differs_from(context.files, want.service) || differs_from(context.files, want.timer);
  TRY_(put(context.files, want.service));
  TRY_(put(context.files, want.timer));
  if (!is_booted(context.files)) {
    const std::string link = enabling_link(want);
    if (context.files.read_link(link).ok()) return Ok{};
    TRY_(context.files.make_directories(link.substr(0, link.rfind('/'))));
    return context.files.symlink(want.timer.path, link);
  }
  if (changed) TRY_(reload_units(context));
  return context.module("service")->apply(context, unit_params(want));
}

}  // namespace

StepModule timer_module() {
  StepModule m;
  m.name = "timer";
  m.help =
      "Runs a program on a schedule: writes the systemd units NAME.service and NAME.timer, and starts the "
      "timer.";
  m.parameters = Json::array(
      {parameter("name", "string", true, "name of the two units"),
       parameter("argv", "list", true, "program (absolute path) and arguments; no shell"),
       parameter("calendar", "string", false,
                 "times as for OnCalendar= in systemd.timer(5), e.g. '*-*-* 02:00'"),
       parameter("after_boot", "string", false, "delay between boot and the first run, e.g. 5min"),
       parameter("every", "string", false, "delay after each run, e.g. 15min"),
       parameter("spread", "string", false, "maximum random delay, so that not all nodes act at once"),
       parameter("catch_up", "bool", false, "run at once if a run was missed", false),
       parameter("user", "string", false, "account that the program runs as; default: root"),
       parameter("description", "string", false, "description of the units; default: the name")});
  m.check = check_timer;
  m.apply = apply_timer;
  return m;
}

}  // namespace muster::steps
