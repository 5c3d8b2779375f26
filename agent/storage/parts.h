// Several steps of other modules as one: storage engines are mostly files, folders and units in the right order.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/steps/modules.h"

namespace muster::steps {

struct Part {
  StepModule module;
  Json params;
};
// All differences at once.
Result<CheckResult> check_parts(StepContext& context, const std::vector<Part>& parts);
// In order; a part that holds already is left alone.
Status apply_parts(StepContext& context, const std::vector<Part>& parts);

using Parts = std::function<Result<std::vector<Part>>(const StepContext&, const Json&)>;
StepModule made_of(std::string name, std::string help, Json parameters, Parts parts);

Part file_part(const std::string& path, const std::string& content, const std::string& mode = "0644");
Part service_part(const std::string& unit, const std::vector<std::string>& restart_for);

}  // namespace muster::steps
