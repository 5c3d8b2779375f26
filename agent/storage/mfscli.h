// Queries to a MooseFS master through its own program.
#pragma once

#include <string>
#include <vector>

#include "agent/steps/step_modules.h"

namespace muster::steps {

// Returns the output of `mfscli` for `what` ("-SCS", "-SIN", "-CM1/..."), fields separated by '|'. An error
// if the master does not answer.
Result<std::string> mfscli(StepContext& context, const std::string& master, std::vector<std::string> what);

}  // namespace muster::steps
