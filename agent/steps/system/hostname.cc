// hostname: sets the node's host name, now and at every boot.
#include "agent/core/parameters.h"
#include "agent/steps/files/cloud_init.h"
#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

constexpr const char* kRunning = "/proc/sys/kernel/hostname";

struct WantedHostname {
  std::string name;
};
MUSTER_PARAMETERS(WantedHostname, required(name, "host name"))

Result<CheckResult> check_hostname(StepContext& context, const WantedHostname& want) {
  const std::string& name = want.name;
  Diff diff;
  if (const auto have = context.files.read_line("/etc/hostname"); have != name)
    diff.add("/etc/hostname: " + have + " -> " + name);
  if (const auto have = context.files.read_line(kRunning); have != name)
    diff.add("current host name: " + have + " -> " + name);
  if (const auto kept = keeps_names(context.files)) add_difference(context.files, *kept, diff);
  return diff.result();
}

Status apply_hostname(StepContext& context, const WantedHostname& want) {
  const std::string& name = want.name;
  if (name.empty() || name.size() > 63 ||
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") !=
          std::string::npos)
    return fail(Code::invalid, "'" + name + "' is not a valid host name");
  if (const auto kept = keeps_names(context.files)) TRY_(put(context.files, *kept));
  if (context.files.read_line("/etc/hostname") != name)
    TRY_(context.files.write("/etc/hostname", name + "\n"));
  if (context.files.read_line(kRunning) != name) TRY_(context.files.write_raw(kRunning, name));
  return Ok{};
}

}  // namespace

StepModule hostname_module() {
  return step_module<WantedHostname>({
      .name = "hostname",
      .help = "Sets the node's host name, now and at every boot. cloud-init (if present) is configured to "
              "write neither it nor /etc/hosts.",
      .check = check_hostname,
      .apply = apply_hostname,
  });
}

}  // namespace muster::steps
