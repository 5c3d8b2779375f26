// A node's object stores stay members while the node is away for a while: the monitors copy nothing of what
// they hold (flag noout of the node in the placement map).
#include "agent/steps/stack_modules.h"
#include "agent/storage/ceph.h"

namespace muster::steps {
namespace {

Result<bool> stays(const Json& params) {
  const std::string state = text_of(params, "state");
  if (state != "set" && state != "unset")
    return fail(Code::invalid, "ceph_noout: 'state' is set or unset, not '" + state + "'");
  return state == "set";
}

Result<bool> has_flag(StepContext& context, const std::string& node) {
  TRY(const Json dump, ceph_json(context, {"osd", "dump"}));
  const Json flags = dump.value("crush_node_flags", Json::object());
  if (!flags.is_object()) return false;
  const auto own = flags.find(node);
  if (own == flags.end() || !own->is_array()) return false;
  for (const auto& flag : *own)
    if (flag == "noout") return true;
  return false;
}

Result<CheckResult> check_noout(StepContext& context, const Json& params) {
  TRY(const bool wanted, stays(params));
  const std::string node = text_of(params, "node");
  TRY(const bool now, has_flag(context, node));
  return now == wanted ? holds() : differs(node + (now ? " has the flag noout" : " has no flag noout"));
}

Status apply_noout(StepContext& context, const Json& params) {
  TRY(const bool wanted, stays(params));
  TRY(auto told,
      ceph_text(context, {"osd", wanted ? "set-group" : "unset-group", "noout", text_of(params, "node")}));
  (void)told;
  return Ok{};
}

}  // namespace

StepModule ceph_noout_module() {
  StepModule m;
  m.name = "ceph_noout";
  m.help =
      "While a node's flag noout is set, its object stores stay members although it is away: nothing of what "
      "they hold is copied to others. What only they hold cannot be read meanwhile.";
  m.parameters = Json::array({parameter("node", "string", true, "its name in the placement map"),
                              parameter("state", "string", true, "set | unset")});
  m.check = check_noout;
  m.apply = apply_noout;
  return m;
}

}  // namespace muster::steps
