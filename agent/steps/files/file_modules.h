// Modules for files and folders that modules of other topics use as well. Each is declared in one place.
#pragma once

#include "agent/core/step.h"

namespace muster::steps {

StepModule file_module();
StepModule directory_module();
StepModule line_module();

}  // namespace muster::steps
