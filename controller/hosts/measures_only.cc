#include "controller/hosts/measures_only.h"

#include <fmt/format.h>

namespace muster {
namespace {

// All measuring modules are in agent/checks/, and their names begin with this prefix.
constexpr std::string_view kMeasures = "accept";
constexpr std::string_view kNothing = "not_applicable";  // module that reports why nothing is measured

bool is_measurement(const std::string& module) {
  return module == kMeasures || module == kNothing || module.starts_with(std::string(kMeasures) + "_");
}

Status refused(const Action& action, const std::string& what) {
  return fail(Code::denied, fmt::format("{}: {}: nothing was done. Running hosts are only measured, never "
                                        "changed: this is an error in muster or in its acceptance profile",
                                        action.id, what));
}

Status measures_only(const Action& action) {
  if (action.kind != ActionKind::check)
    return refused(action, fmt::format("the plan has an action of kind '{}'", to_string(action.kind)));
  for (const Json& step : action.params.value("steps", Json::array())) {
    const std::string module = step.is_object() ? step.value("module", "") : "";
    if (!is_measurement(module)) return refused(action, fmt::format("a step uses module '{}'", module));
    const Json verify = step.value("verify", Json());
    if (verify.is_object() && !is_measurement(verify.value("module", "")))
      return refused(action, fmt::format("a step is verified by module '{}'", verify.value("module", "")));
  }
  return Ok{};
}

}  // namespace

Status measures_only(const Plan& plan) {
  if (!plan.destroys.empty())
    return fail(Code::denied, fmt::format("the plan would destroy data on {}: nothing was done",
                                          plan.destroys.front().node));
  for (const Action& action : plan.actions) TRY_(measures_only(action));
  return Ok{};
}

}  // namespace muster
