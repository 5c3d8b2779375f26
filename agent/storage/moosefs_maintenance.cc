// A chunk server that is away for a while: in maintenance mode its master copies nothing of what it holds.
#include "agent/steps/stack_modules.h"
#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

constexpr const char* kPort = "9422";

Result<bool> wants_maintenance(const Json& params) {
  const std::string state = text_of(params, "state");
  if (state != "on" && state != "off")
    return fail(Code::invalid, "moosefs_maintenance: 'state' is on or off, not '" + state + "'");
  return state == "on";
}

// The master's word for it: "maintenance_off", "maintenance_on", "maintenance_tmp_on" (a minute by itself
// after a server said goodbye), "-" where this master does not lead.
Result<std::string> mode_of(StepContext& context, const Json& params) {
  TRY(const std::string out,
      run_tool(context, {"mfscli", "-H", text_of(params, "master"), "-SCS", "-n", "-s", "|"}));
  const std::string own = text_of(params, "address");
  for (const auto& line : lines_of(out)) {
    const auto fields = split(line, '|');
    if (fields.size() > 7 && fields[0] == "chunk servers:" && fields[1] == own) return fields[7];
  }
  return fail(Code::not_found, "the master knows no chunk server " + own);
}

Result<CheckResult> check_maintenance(StepContext& context, const Json& params) {
  TRY(const bool wanted, wants_maintenance(params));
  TRY(const std::string mode, mode_of(context, params));
  const bool now = mode == "maintenance_on";
  return now == wanted ? holds() : differs("the master says " + mode);
}

Status apply_maintenance(StepContext& context, const Json& params) {
  TRY(const bool wanted, wants_maintenance(params));
  TRY(auto told, run_tool(context, {"mfscli", "-H", text_of(params, "master"),
                                    std::string(wanted ? "-CM1/" : "-CM0/") + text_of(params, "address") +
                                        "/" + kPort}));
  (void)told;
  return Ok{};
}

}  // namespace

StepModule moosefs_maintenance_module() {
  StepModule m;
  m.name = "moosefs_maintenance";
  m.help =
      "While its chunk server is in maintenance mode, the master copies nothing of what this node holds "
      "although it is away.";
  m.parameters = Json::array({parameter("master", "string", true, "address of the master"),
                              parameter("address", "string", true, "own address"),
                              parameter("state", "string", true, "on | off")});
  m.check = check_maintenance;
  m.apply = apply_maintenance;
  return m;
}

}  // namespace muster::steps
