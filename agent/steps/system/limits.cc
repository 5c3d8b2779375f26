// limits: sets resource limits for login sessions (pam_limits) and for services (systemd's defaults).
#include <cctype>

#include <fmt/format.h>

#include "agent/core/parameters.h"
#include "agent/steps/files/own_file.h"

namespace muster::steps {
namespace {

using Limits = std::map<std::string, Json>;
struct WantedLimits {
  std::string name = "base", domain = "*";
  Limits values, services;
  OwnFile sessions_file = {}, services_file = {};
};
MUSTER_PARAMETERS(WantedLimits, optional(name, "used in file names: 60-muster-NAME.conf"),
                  optional(domain, "users that `values` apply to, as in limits.conf(5)"),
                  optional(values, "item -> value for sessions, e.g. memlock: unlimited"),
                  optional(services, "item -> value for services, e.g. memlock: unlimited"))

bool one_word(const std::string& text) {
  return !text.empty() && text.find_first_of(" \t\n#") == std::string::npos;
}

// "memlock" -> "DefaultLimitMEMLOCK", "unlimited" -> "infinity".
std::string manager_key(const std::string& item) {
  std::string key = "DefaultLimit";
  for (const char c : item) key += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return key;
}
std::string manager_value(const Json& value) {
  const std::string text = value_text(value);
  return text == "unlimited" ? "infinity" : text;
}

Status complete_limits(const StepContext&, WantedLimits& want) {
  TRY_(check_name(want.name, "limits"));
  if (!one_word(want.domain)) return fail(Code::invalid, "limits: 'domain' must be one word");
  for (const Limits* limits : {&want.values, &want.services})
    for (const auto& [item, value] : *limits)
      if (!one_word(item) || !one_word(value_text(value)))
        return fail(Code::invalid, "limits: '" + item + "' and its value must be single words");
  std::string sessions, services;
  for (const auto& [item, value] : want.values)
    for (const char* type : {"soft", "hard"})
      sessions += fmt::format("{} {} {} {}\n", want.domain, type, item, value_text(value));
  for (const auto& [item, value] : want.services)
    services += manager_key(item) + "=" + manager_value(value) + "\n";
  want.sessions_file = {"/etc/security/limits.d/60-muster-" + want.name + ".conf",
                        sessions.empty() ? "" : "# Written by muster.\n" + sessions, 0644};
  want.services_file = {"/etc/systemd/system.conf.d/60-muster-" + want.name + ".conf",
                        services.empty() ? "" : "# Written by muster.\n[Manager]\n" + services, 0644};
  return Ok{};
}

// Adds the default limits for services that the running systemd does not have yet.
Status manager_diff(StepContext& context, const WantedLimits& want, Diff& diff) {
  if (want.services.empty() || !is_booted(context.files)) return Ok{};
  std::vector<std::string> argv = {"systemctl", "show"};
  for (const auto& [item, value] : want.services) argv.push_back("--property=" + manager_key(item));
  TRY(const std::string text, run_tool(context, argv));
  for (const auto& [item, value] : want.services) {
    const std::string line = manager_key(item) + "=" + manager_value(value);
    bool found = false;
    for (const auto& have : split_lines(text)) found = found || have == line;
    if (!found) diff.add("the running systemd does not have " + line);
  }
  return Ok{};
}

Result<CheckResult> check_limits(StepContext& context, const WantedLimits& want) {
  Diff diff;
  add_difference(context.files, want.sessions_file, diff);
  add_difference(context.files, want.services_file, diff);
  TRY_(manager_diff(context, want, diff));
  return diff.result();
}

Status apply_limits(StepContext& context, const WantedLimits& want) {
  TRY_(put(context.files, want.sessions_file));
  TRY_(put(context.files, want.services_file));
  Diff diff;
  TRY_(manager_diff(context, want, diff));
  if (diff.empty()) return Ok{};
  TRY_(run_tool(context, {"systemctl", "daemon-reexec"}));
  return Ok{};
}

}  // namespace

StepModule limits_module() {
  return step_module<WantedLimits>({
      .name = "limits",
      .help = "Sets resource limits, soft and hard: for login sessions in /etc/security/limits.d, and for "
              "services as systemd's defaults (limits.d does not apply to services). Checked against the "
              "running systemd.",
      .check = check_limits,
      .apply = apply_limits,
      .complete = complete_limits,
  });
}

}  // namespace muster::steps
