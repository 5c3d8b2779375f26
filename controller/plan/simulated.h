// Acceptance of simulated hardware: a shipped profile with the limits, times and sizes that the spec's
// `lab.acceptance` gives for virtual machines. The changes are listed in the plan and in the report.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "controller/plan/plan_steps.h"
#include "controller/spec/spec.h"

namespace muster {

// Changes the steps of an acceptance profile and records which changes applied.
class Simulated {
 public:
  explicit Simulated(const LabAcceptance& what) : what_(what) {}
  void change(std::vector<PlannedStep>& steps);
  // For the operator: what applies, and which of the spec's names the profile does not have.
  std::vector<std::string> notes(const std::string& profile) const;

 private:
  void change_limits(const std::string& check, Json& expect);
  void change_amounts(const std::string& check, Json& params);

  const LabAcceptance& what_;
  std::set<std::string> used_;
  std::map<RenderedStepPtr, RenderedStepPtr> changed_ = {};  // nodes that share a step share its changed form
};

// For the operator: on which of these machines a lab provides simulated GPUs; "" if on none.
std::string simulated_gpu_note(const std::map<std::string, const HardwareFacts*>& machines);

}  // namespace muster
