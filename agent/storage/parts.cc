#include "agent/storage/parts.h"

namespace muster::steps {

Result<CheckResult> check_parts(StepContext& context, const std::vector<Part>& parts) {
  Diff diff;
  for (const auto& part : parts) {
    TRY(const CheckResult one, part.module.check(context, part.params));
    if (one.holds == Holds::no) diff.add(one.diff);
  }
  return diff.result();
}

Status apply_parts(StepContext& context, const std::vector<Part>& parts) {
  for (const auto& part : parts) {
    TRY(const CheckResult before, part.module.check(context, part.params));
    if (before.holds != Holds::no) continue;
    TRY_(part.module.apply(context, part.params));
  }
  return Ok{};
}

StepModule made_of(std::string name, std::string help, Json parameters, Parts parts) {
  StepModule m;
  m.name = std::move(name);
  m.help = std::move(help);
  m.parameters = std::move(parameters);
  m.check = [parts](StepContext& context, const Json& params) -> Result<CheckResult> {
    TRY(const auto list, parts(context, params));
    return check_parts(context, list);
  };
  m.apply = [parts](StepContext& context, const Json& params) -> Status {
    TRY(const auto list, parts(context, params));
    return apply_parts(context, list);
  };
  return m;
}

Part file_part(const std::string& path, const std::string& content, const std::string& mode) {
  return {file_module(), {{"path", path}, {"content", content}, {"mode", mode}}};
}

Part service_part(const std::string& unit, const std::vector<std::string>& restart_for) {
  return {service_module(), {{"names", {unit}}, {"enabled", true}, {"restart_for", restart_for}}};
}

}  // namespace muster::steps
