// not_applicable: takes the place of a step that has nothing to act on, so that the report shows why it was
// not run.
#include "agent/steps/step_modules.h"

namespace muster::steps {

StepModule not_applicable_module() {
  StepModule m;
  m.name = "not_applicable";
  m.help =
      "Does nothing. The planner inserts it in place of a step that has `otherwise` if its `for_each` is "
      "empty or its `when` is false.";
  m.parameters = Json::array({parameter("reason", "string", true, "reason shown in the report")});
  m.check = [](StepContext&, const Json& params) -> Result<CheckResult> {
    return CheckResult{Holds::not_applicable, text_of(params, "reason")};
  };
  return m;
}

}  // namespace muster::steps
