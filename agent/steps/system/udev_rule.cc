// udev_rule: writes a udev rules file and applies it to existing devices, too.
#include <fmt/format.h>

#include "agent/core/parameters.h"
#include "agent/steps/files/own_file.h"

namespace muster::steps {
namespace {

struct WantedUdevRule {
  std::string name;
  Texts rules;
  int64_t order = 70;
  Texts subsystems;
  OwnFile file = {};
};
MUSTER_PARAMETERS(
    WantedUdevRule, required(name, "used in the file name: ORDER-muster-NAME.rules"),
    required(rules, "rules, one per element, as in udev(7)"),
    optional(order, "two digits that begin the file name; udev reads the files in the order of their names"),
    optional(subsystems, "subsystems whose devices are triggered; default: all"))

Status complete_udev_rule(const StepContext&, WantedUdevRule& want) {
  TRY_(check_name(want.name, "udev_rule"));
  std::string rules;
  for (const auto& rule : want.rules) {
    if (rule.find('=') == std::string::npos)
      return fail(Code::invalid,
                  "udev_rule: '" + rule + "' is not a rule: it neither matches nor assigns anything");
    rules += rule + (rule.back() == '\n' ? "" : "\n");
  }
  if (rules.empty()) return fail(Code::invalid, "udev_rule: 'rules' is empty");
  if (want.order < 10 || want.order > 99)
    return fail(Code::invalid, "udev_rule: 'order' must be between 10 and 99");
  want.file = {fmt::format("/etc/udev/rules.d/{}-muster-{}.rules", want.order, want.name),
               "# Written by muster.\n" + rules, 0644};
  return Ok{};
}

Result<CheckResult> check_udev_rule(StepContext& context, const WantedUdevRule& want) {
  Diff diff;
  add_difference(context.files, want.file, diff);
  if (has_pending_reload(context.files, "udev-" + want.name))
    diff.add("the rules are not yet applied to existing devices");
  return diff.result();
}

Status apply_udev_rule(StepContext& context, const WantedUdevRule& want) {
  const std::string debt = "udev-" + want.name;
  if (differs_from(context.files, want.file) && is_booted(context.files))
    TRY_(mark_pending(context.files, debt));
  TRY_(put(context.files, want.file));
  if (!has_pending_reload(context.files, debt)) return Ok{};
  TRY_(run_tool(context, {"udevadm", "control", "--reload"}));
  std::vector<std::string> argv = {"udevadm", "trigger", "--settle"};
  for (const auto& subsystem : want.subsystems) argv.push_back("--subsystem-match=" + subsystem);
  TRY_(run_tool(context, argv, 3 * kMinute));
  return clear_pending(context.files, debt);
}

}  // namespace

StepModule udev_rule_module() {
  return step_module<WantedUdevRule>({
      .name = "udev_rule",
      .help = "Writes a udev rules file, loads it and applies it to existing devices.",
      .check = check_udev_rule,
      .apply = apply_udev_rule,
      .complete = complete_udev_rule,
  });
}

}  // namespace muster::steps
