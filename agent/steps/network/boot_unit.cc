#include "agent/steps/network/boot_unit.h"

#include <fmt/format.h>

namespace muster::steps {
namespace {

OwnFile file_of(const BootUnit& unit) {
  std::string text =
      fmt::format("# Written by muster.\n[Unit]\nDescription={}\nBefore=slurmd.service docker.service\n",
                  unit.description);
  for (const auto& port : unit.rails)
    text += fmt::format("After=sys-subsystem-net-devices-{}.device\n", port.interface);
  text += "\n[Service]\nType=oneshot\nRemainAfterExit=yes\n";
  for (const auto& command : unit.commands) text += "ExecStart=" + command + "\n";
  return {"/etc/systemd/system/" + unit.name, text + "\n[Install]\nWantedBy=multi-user.target\n", 0644};
}

Json params_of(const BootUnit& unit) {
  return {{"names", {unit.name}}, {"enabled", true}, {"running", false}};
}

}  // namespace

Result<CheckResult> check_boot_unit(StepContext& context, const BootUnit& unit, Diff& diff) {
  add_difference(context.files, file_of(unit), diff);
  if (!diff.empty()) return diff.result();
  return context.module("service")->check(context, params_of(unit));
}

Status apply_boot_unit(StepContext& context, const BootUnit& unit) {
  const OwnFile file = file_of(unit);
  const bool changed = differs_from(context.files, file);
  TRY_(put(context.files, file));
  if (changed) TRY_(reload_units(context));
  return context.module("service")->apply(context, params_of(unit));
}

}  // namespace muster::steps
