// A systemd unit that does again at every boot what adapters lose at a restart, or what the kernel numbers
// differently.
//
// It runs once the rails' interfaces are there, before jobs can start. Thread safety: stateless functions.
#pragma once

#include <string>
#include <vector>

#include "agent/steps/files/own_file.h"
#include "host/rails.h"

namespace muster::steps {

struct BootUnit {
  std::string name;         // "muster-rail-qos.service"
  std::string description;  // of the unit
  std::vector<PortRecord> rails;
  std::vector<std::string> commands;  // with absolute paths, in their order
};
// Adds to `diff` how the unit's file differs; if nothing does at all, looks whether the unit is enabled.
Result<CheckResult> check_boot_unit(StepContext& context, const BootUnit& unit, Diff& diff);
// Writes and enables the unit; does not start it.
Status apply_boot_unit(StepContext& context, const BootUnit& unit);

}  // namespace muster::steps
