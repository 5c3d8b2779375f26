// The module for systemd's services, which modules of other topics use as well.
#pragma once

#include "agent/core/step.h"

namespace muster::steps {

StepModule service_module();

}  // namespace muster::steps
