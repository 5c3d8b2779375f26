// The module for systemd's services, which modules of other topics use as well.
#pragma once

#include <optional>

#include "agent/core/parameters.h"

namespace muster::steps {

struct WantedService {
  Texts names;
  std::optional<bool> enabled = {};
  bool running = true, masked = false;
  Texts restart_for = {};
};
MUSTER_PARAMETERS(WantedService, required(names, "unit names; .service is added to a name without a suffix"),
                  optional(enabled, "whether the units start at boot; default: unchanged"),
                  optional(running, "whether the units must be running"),
                  optional(masked, "true: stop and mask the units; a unit that does not exist is accepted"),
                  optional(restart_for, "files that the units read when they start"))
Result<CheckResult> check_service(StepContext& context, const WantedService& want);
Status apply_service(StepContext& context, const WantedService& want);

StepModule service_module();

}  // namespace muster::steps
