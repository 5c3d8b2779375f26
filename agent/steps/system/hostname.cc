// hostname: sets the node's host name, now and at every boot.
#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

constexpr const char* kRunning = "/proc/sys/kernel/hostname";

Result<CheckResult> check_hostname(StepContext& context, const Json& params) {
  const std::string name = text_of(params, "name");
  Diff diff;
  if (const auto have = context.files.read_line("/etc/hostname"); have != name)
    diff.add("/etc/hostname: " + have + " -> " + name);
  if (const auto have = context.files.read_line(kRunning); have != name)
    diff.add("current host name: " + have + " -> " + name);
  return diff.result();
}

Status apply_hostname(StepContext& context, const Json& params) {
  const std::string name = text_of(params, "name");
  if (name.empty() || name.size() > 63 ||
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") !=
          std::string::npos)
    return fail(Code::invalid, "'" + name + "' is not a valid host name");
  if (context.files.read_line("/etc/hostname") != name)
    TRY_(context.files.write("/etc/hostname", name + "\n"));
  if (context.files.read_line(kRunning) != name) TRY_(context.files.write_raw(kRunning, name));
  return Ok{};
}

}  // namespace

StepModule hostname_module() {
  StepModule m;
  m.name = "hostname";
  m.help = "Sets the node's host name, now and at every boot.";
  m.parameters = Json::array({parameter("name", "string", true, "host name")});
  m.check = check_hostname;
  m.apply = apply_hostname;
  return m;
}

}  // namespace muster::steps
