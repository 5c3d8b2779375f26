// A step module, found by its name, on a fake machine of its own. Thread: one.
#pragma once

#include "agent/core/step.h"
#include "tests/fakes/fake_machine.h"

namespace muster::testing {

struct StepRun {
  tests::FakeMachine machine;
  StepContext context = machine.context();
  Status apply(const char* module, const Json& params) {
    return find_step_module(module)->apply(context, params);
  }
  Result<CheckResult> check(const char* module, const Json& params) {
    return find_step_module(module)->check(context, params);
  }
};

// With a system that systemd has booted.
struct BootedStepRun : StepRun {
  BootedStepRun() { machine.put("/run/systemd/system/x", ""); }
};

}  // namespace muster::testing
