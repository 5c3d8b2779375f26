// The rules of acceptance: what was found against what is declared, what was measured against what is expected.
//
// Pure. Every check says where its expected value comes from (Check::derivation). Nothing here is lenient by omission:
// declared and not found is a failure; expected and not measured is skipped, which blocks acceptance while the check is
// mandatory; "not applicable" is only for what the spec does not declare.
// Thread: pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/facts.h"
#include "controller/report/report.h"
#include "controller/spec/spec.h"

namespace muster {

// Hardware found against NodeSpec::hardware and NodeSpec::disks: counts equal, memory at least (less what firmware and
// kernel keep), models by glob, PCIe links as trained. `facts` null: never collected, so every declared part is skipped.
std::vector<Check> judge_hardware(const NodeSpec& node, const HardwareFacts* facts);

// One acceptance step of one node, as the journal has it.
struct MeasuredStep {
  std::string node = {};
  std::string group = {};    // the playbook step's name before for_each: what nodes are compared by ("dgemm")
  std::string title = {};    // for people
  std::string subject = {};  // for_each element: peer, mount; may be empty
  std::string status = {};   // of the step event: applied | already | failed | not_applicable | incomplete
  std::string message = {};
  bool mandatory = true;
  Json expect = nullptr;  // {metric: {min?, max?, fleet_min_ratio?, unit?}}, from the acceptance profile
  // The kernel's measurement (kernels/kernels.h: "outcome", "metrics", "blame", "detail"), or several of them from one
  // step: {"parts": [{"subject", "result"}]}.
  Json result = nullptr;
};

// Per node, in the order given: one check that the data was right ("dgemm/data"), then one per expected metric.
//   below `min` or above `max`                           -> fail
//   below `fleet_min_ratio` x median over all nodes      -> fail; the rule needs three values to mean anything
//   a failing check that is not mandatory                -> degraded
//   measured, but not the metric; could not run here     -> skipped
std::map<std::string, std::vector<Check>> judge_measurements(const std::vector<MeasuredStep>& steps);

// Directions between nodes, from the results of link steps. `node_by_address` translates what the kernel saw. Every pair
// of `nodes` has two records; one that was not measured is skipped.
std::vector<LinkRecord> link_matrix(const std::vector<MeasuredStep>& steps,
                                    const std::vector<std::string>& nodes,
                                    const std::map<std::string, std::string>& node_by_address);

// `expect` of a profile step is well formed: known keys, numbers, min <= max, 0 < ratio <= 1. For the playbook checker.
Status check_expectations(const Json& expect);

}  // namespace muster
