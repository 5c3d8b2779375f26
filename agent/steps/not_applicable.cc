// not_applicable: takes the place of a step that has nothing to act on, so that the report shows why it was
// not run.
#include "agent/core/parameters.h"
#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

struct Lacking {
  std::string reason;
};
MUSTER_PARAMETERS(Lacking, required(reason, "reason shown in the report"))

Result<CheckResult> check_lacking(StepContext&, const Lacking& step) {
  return CheckResult{Holds::not_applicable, step.reason};
}

}  // namespace

StepModule not_applicable_module() {
  return step_module<Lacking>({
      .name = "not_applicable",
      .help = "Does nothing. The planner inserts it in place of a step that has `otherwise` if its "
              "`for_each` is empty or its `when` is false.",
      .check = check_lacking,
  });
}

}  // namespace muster::steps
