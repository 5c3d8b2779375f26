// udev_rule: writes a udev rules file and applies it to existing devices, too.
#include <fmt/format.h>

#include "agent/steps/files/own_file.h"

namespace muster::steps {
namespace {

struct WantedUdevRule {
  std::string name;
  OwnFile file;
  std::vector<std::string> subsystems;
};

Result<WantedUdevRule> wanted_udev_rule(const Json& params) {
  WantedUdevRule out;
  out.name = text_of(params, "name");
  TRY_(check_name(out.name, "udev_rule"));
  std::string rules;
  for (const auto& rule : list_of(params, "rules")) {
    if (rule.find('=') == std::string::npos)
      return fail(Code::invalid,
                  "udev_rule: '" + rule + "' is not a rule: it neither matches nor assigns anything");
    rules += rule + (rule.back() == '\n' ? "" : "\n");
  }
  if (rules.empty()) return fail(Code::invalid, "udev_rule: 'rules' is empty");
  const int64_t order = int_of(params, "order", 70);
  if (order < 10 || order > 99) return fail(Code::invalid, "udev_rule: 'order' must be between 10 and 99");
  out.file = {fmt::format("/etc/udev/rules.d/{}-muster-{}.rules", order, out.name),
              "# Written by muster.\n" + rules, 0644};
  out.subsystems = list_of(params, "subsystems");
  return out;
}

Result<CheckResult> check_udev_rule(StepContext& context, const Json& params) {
  TRY(const WantedUdevRule want, wanted_udev_rule(params));
  Diff diff;
  add_difference(context.files, want.file, diff);
  if (has_pending_reload(context.files, "udev-" + want.name))
    diff.add("the rules are not yet applied to existing devices");
  return diff.result();
}

Status apply_udev_rule(StepContext& context, const Json& params) {
  TRY(const WantedUdevRule want, wanted_udev_rule(params));
  const std::string debt = "udev-" + want.name;
  if (differs_from(context.files, want.file) && is_booted(context.files))
    TRY_(mark_pending(context.files, debt));
  TRY_(put(context.files, want.file));
  if (!has_pending_reload(context.files, debt)) return Ok{};
  TRY(auto loaded, run_tool(context, {"udevadm", "control", "--reload"}));
  std::vector<std::string> argv = {"udevadm", "trigger", "--settle"};
  for (const auto& subsystem : want.subsystems) argv.push_back("--subsystem-match=" + subsystem);
  TRY(auto triggered, run_tool(context, argv, 3 * kMinute));
  (void)loaded, (void)triggered;
  return clear_pending(context.files, debt);
}

}  // namespace

StepModule udev_rule_module() {
  StepModule m;
  m.name = "udev_rule";
  m.help = "Writes a udev rules file, loads it and applies it to existing devices.";
  m.parameters = Json::array(
      {parameter("name", "string", true, "used in the file name: ORDER-muster-NAME.rules"),
       parameter("rules", "list", true, "rules, one per element, as in udev(7)"),
       parameter("order", "int", false,
                 "two digits that begin the file name; udev reads the files in the order of their names", 70),
       parameter("subsystems", "list", false, "subsystems whose devices are triggered; default: all")});
  m.check = check_udev_rule;
  m.apply = apply_udev_rule;
  return m;
}

}  // namespace muster::steps
