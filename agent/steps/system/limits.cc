// limits: sets resource limits for login sessions (pam_limits) and for services (systemd's defaults).
#include <cctype>

#include <fmt/format.h>

#include "agent/steps/files/own_file.h"
#include "base/json_dump.h"

namespace muster::steps {
namespace {

std::string word(const Json& value) {
  return value.is_string() ? value.get<std::string>() : dump_json(value);
}

bool one_word(const std::string& text) {
  return !text.empty() && text.find_first_of(" \t\n#") == std::string::npos;
}

Result<OwnFile> sessions_file(const Json& params) {
  OwnFile out{"/etc/security/limits.d/60-muster-" + text_of(params, "name", "base") + ".conf", "", 0644};
  const std::string domain = text_of(params, "domain", "*");
  if (!one_word(domain)) return fail(Code::invalid, "limits: 'domain' must be one word");
  for (const auto& [item, value] : object_of(params, "values").items()) {
    if (!one_word(item) || !one_word(word(value)))
      return fail(Code::invalid, "limits: '" + item + "' and its value must be single words");
    for (const char* type : {"soft", "hard"})
      out.text += fmt::format("{} {} {} {}\n", domain, type, item, word(value));
  }
  if (!out.text.empty()) out.text = "# Written by muster.\n" + out.text;
  return out;
}

// "memlock" -> "DefaultLimitMEMLOCK", "unlimited" -> "infinity".
std::string manager_key(const std::string& item) {
  std::string key = "DefaultLimit";
  for (const char c : item) key += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return key;
}
std::string manager_value(const Json& value) { return word(value) == "unlimited" ? "infinity" : word(value); }

Result<OwnFile> services_file(const Json& params) {
  OwnFile out{"/etc/systemd/system.conf.d/60-muster-" + text_of(params, "name", "base") + ".conf", "", 0644};
  for (const auto& [item, value] : object_of(params, "services").items()) {
    if (!one_word(item) || !one_word(word(value)))
      return fail(Code::invalid, "limits: '" + item + "' and its value must be single words");
    out.text += manager_key(item) + "=" + manager_value(value) + "\n";
  }
  if (!out.text.empty()) out.text = "# Written by muster.\n[Manager]\n" + out.text;
  return out;
}

// Adds the default limits for services that the running systemd does not have yet.
Status manager_diff(StepContext& context, const Json& params, Diff& diff) {
  if (object_of(params, "services").empty() || !is_booted(context.files)) return Ok{};
  std::vector<std::string> argv = {"systemctl", "show"};
  for (const auto& [item, value] : object_of(params, "services").items())
    argv.push_back("--property=" + manager_key(item));
  TRY(const std::string text, run_tool(context, argv));
  for (const auto& [item, value] : object_of(params, "services").items()) {
    const std::string line = manager_key(item) + "=" + manager_value(value);
    bool found = false;
    for (const auto& have : lines_of(text)) found = found || have == line;
    if (!found) diff.add("the running systemd does not have " + line);
  }
  return Ok{};
}

Result<CheckResult> check_limits(StepContext& context, const Json& params) {
  TRY_(check_name(text_of(params, "name", "base"), "limits"));
  TRY(const OwnFile sessions, sessions_file(params));
  TRY(const OwnFile services, services_file(params));
  Diff diff;
  add_difference(context.files, sessions, diff);
  add_difference(context.files, services, diff);
  TRY_(manager_diff(context, params, diff));
  return diff.result();
}

Status apply_limits(StepContext& context, const Json& params) {
  TRY_(check_name(text_of(params, "name", "base"), "limits"));
  TRY(const OwnFile sessions, sessions_file(params));
  TRY(const OwnFile services, services_file(params));
  TRY_(put(context.files, sessions));
  TRY_(put(context.files, services));
  Diff diff;
  TRY_(manager_diff(context, params, diff));
  if (diff.empty()) return Ok{};
  TRY(auto out, run_tool(context, {"systemctl", "daemon-reexec"}));
  (void)out;
  return Ok{};
}

}  // namespace

StepModule limits_module() {
  StepModule m;
  m.name = "limits";
  m.help =
      "Sets resource limits, soft and hard: for login sessions in /etc/security/limits.d, and for services "
      "as systemd's defaults (limits.d does not apply to services). Checked against the running systemd.";
  m.parameters = Json::array(
      {parameter("name", "string", false, "used in file names: 60-muster-NAME.conf", "base"),
       parameter("domain", "string", false, "users that `values` apply to, as in limits.conf(5)", "*"),
       parameter("values", "object", false, "item -> value for sessions, e.g. memlock: unlimited"),
       parameter("services", "object", false, "item -> value for services, e.g. memlock: unlimited")});
  m.check = check_limits;
  m.apply = apply_limits;
  return m;
}

}  // namespace muster::steps
