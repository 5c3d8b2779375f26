// Acceptance of simulated hardware: replaces limits, times and sizes of a shipped profile by those that the
// spec's `lab.acceptance` declares for virtual machines. The plan and the report list the changes.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "controller/plan/plan_steps.h"
#include "controller/spec/spec.h"

namespace muster {

class Simulated {
 public:
  explicit Simulated(const LabAcceptance& what) : what_(what) {}
  void change(std::vector<PlannedStep>& steps);
  // For the operator: the changes that apply, and the spec's names that the profile lacks.
  std::vector<std::string> notes(const std::string& profile) const;

 private:
  void change_limits(const std::string& check, Json& expect);
  void change_amounts(const std::string& check, Json& params);

  const LabAcceptance& what_;
  std::set<std::string> used_;
  std::map<RenderedStepPtr, RenderedStepPtr> changed_ = {};  // step -> its changed form, shared as well
};

// "" if no machine has a lab's simulated GPUs.
std::string simulated_gpu_note(const std::map<std::string, const HardwareFacts*>& machines);

}  // namespace muster
