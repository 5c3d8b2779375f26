// group: creates a local group, with a fixed GID if one is given.
#include <fmt/format.h>

#include "agent/core/parameters.h"
#include "agent/steps/accounts.h"
#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

struct WantedGroup {
  std::string name;
  int64_t gid = 0;
  bool system = false;
};
MUSTER_PARAMETERS(WantedGroup, required(name, "group name"), optional(gid, "GID; 0: any"),
                  optional(system, "create a system group"))

Result<CheckResult> check_group(StepContext& context, const WantedGroup& want) {
  const auto group = find_group(context.files, want.name);
  if (!group) return differs("group " + want.name + " does not exist");
  if (want.gid > 0 && group->gid != want.gid)
    return differs(fmt::format("group {}: gid {} -> {}", want.name, group->gid, want.gid));
  return holds();
}

Status apply_group(StepContext& context, const WantedGroup& want) {
  const auto group = find_group(context.files, want.name);
  if (group && (want.gid <= 0 || group->gid == want.gid)) return Ok{};
  std::vector<std::string> argv = {group ? "groupmod" : "groupadd"};
  if (want.gid > 0) argv.insert(argv.end(), {"-g", std::to_string(want.gid)});
  if (!group && want.system) argv.push_back("--system");
  argv.push_back(want.name);
  TRY_(run_tool(context, argv));
  return Ok{};
}

}  // namespace

StepModule group_module() {
  return step_module<WantedGroup>({
      .name = "group",
      .help = "Creates a local group, with a fixed GID if it must be the same on all nodes.",
      .check = check_group,
      .apply = apply_group,
  });
}

}  // namespace muster::steps
