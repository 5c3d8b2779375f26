// group: creates a local group, with a fixed GID if one is given.
#include <fmt/format.h>

#include "agent/steps/accounts.h"
#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

Result<CheckResult> check_group(StepContext& context, const Json& params) {
  const std::string name = text_of(params, "name");
  const int64_t gid = int_of(params, "gid", 0);
  const auto group = find_group(context.files, name);
  if (!group) return differs("group " + name + " does not exist");
  if (gid > 0 && group->gid != gid)
    return differs(fmt::format("group {}: gid {} -> {}", name, group->gid, gid));
  return holds();
}

Status apply_group(StepContext& context, const Json& params) {
  const std::string name = text_of(params, "name");
  const int64_t gid = int_of(params, "gid", 0);
  const auto group = find_group(context.files, name);
  if (group && (gid <= 0 || group->gid == gid)) return Ok{};
  std::vector<std::string> argv = {group ? "groupmod" : "groupadd"};
  if (gid > 0) argv.insert(argv.end(), {"-g", std::to_string(gid)});
  if (!group && bool_of(params, "system", false)) argv.push_back("--system");
  argv.push_back(name);
  TRY(auto out, run_tool(context, argv));
  (void)out;
  return Ok{};
}

}  // namespace

StepModule group_module() {
  StepModule m;
  m.name = "group";
  m.help = "Creates a local group, with a fixed GID if it must be the same on all nodes.";
  m.parameters = Json::array({parameter("name", "string", true, "group name"),
                              parameter("gid", "int", false, "GID; 0: any", 0),
                              parameter("system", "bool", false, "create a system group", false)});
  m.check = check_group;
  m.apply = apply_group;
  return m;
}

}  // namespace muster::steps
