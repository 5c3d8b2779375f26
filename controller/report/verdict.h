// The rules of acceptance: what was found against what is declared, what was measured against what is
// expected.
//
// Pure. Every check says where its expected value comes from (Check::derivation). Nothing here is lenient by
// omission: declared and not found is a failure; expected and not measured is skipped, which blocks
// acceptance while the check is mandatory; "not applicable" is only for what the spec does not declare.
// Thread: pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/facts.h"
#include "controller/report/history.h"
#include "controller/report/report.h"
#include "controller/spec/spec.h"

namespace muster {

// Hardware found against NodeSpec::hardware and NodeSpec::disks: counts equal, memory at least (less what
// firmware and kernel keep), models by glob, PCIe links as trained. `facts` null: never collected, so every
// declared part is skipped.
std::vector<Check> judge_hardware(const NodeSpec& node, const HardwareFacts* facts);

// One acceptance step of one node, as the journal has it.
struct MeasuredStep {
  std::string id = {};  // in its order: "acceptance/link[node02]"
  std::string node = {};
  std::string group = {};    // the playbook step's name before for_each: what nodes are compared by ("dgemm")
  std::string title = {};    // for people
  std::string subject = {};  // for_each element: peer, mount, drive; may be empty
  std::string like = {};     // compared only with parts of the same word: a drive model; may be empty
  // Of the step event: applied | already | failed | not_applicable | not_looked_at | incomplete.
  std::string status = {};
  std::string message = {};
  bool mandatory = true;
  std::vector<std::string> blocks = {};   // PlaybookStep::blocks
  bool on_gpus = false;                   // about GPUs that are not stand-ins: controller/report/gpu_checks.h
  std::vector<std::string> adopted = {};  // of its nodes, when on_gpus: those that are never re-imaged
  // Of a test of several nodes together, which is written down for the one that started it: all of them, and,
  // when it did not pass, the rounds of tests in pairs that followed (controller/report/collective.h).
  std::vector<std::string> members = {};
  Json rounds = nullptr;
  // What of its node it was measured on (ShareFacts); null: all of it. Set by the rules.
  const ShareFacts* share = nullptr;
  // Of a node that failed by itself: what it started with others counts against none of them.
  bool own_affair = false;
  Json expect = nullptr;  // from the acceptance profile, see check_expectations()
  // The kernel's measurement (kernels/kernels.h: "outcome", "metrics", "blame", "detail"), or several of them
  // from one step: {"parts": [{"subject", "like"?, "result"}]}.
  Json result = nullptr;
};

// What measurements are compared with, beside the numbers of the profile.
struct Comparison {
  // One node's own result only, as when an order of the executor ends: the absolute limits. What needs all
  // nodes (fleet, history) and what has two ends (links) is judged when the run is over, by the same function
  // without this.
  bool own_only = false;
  const History* history = nullptr;
  std::map<std::string, const HardwareFacts*> facts = {};
  std::vector<DriveModel> drives = {};  // what is known by model; the first line that fits counts
};

// Per node, in the order given: one check that the data was right ("dgemm/data"), then one per expected
// metric. The verdict is the worst of:
//   wrong data                                                          -> fail
//   what a step that must run needs is not there (detail.missing)       -> fail
//   a check of GPUs that did not run (controller/report/gpu_checks.h)   -> skipped, and mandatory
//   below `min`, above `max`, below `fail_ratio` x the derived value    -> fail: it does not do its work
//   below `of_raw_reads` x what the drives under the file system read in the same run, side by side; below
//      `otherwise_min` where these were not measured                    -> fail
//   `derive: drive_models`: as any derived value, of the models of the drives under it; nothing, and `min`
//      alone, where a model is not known
//   below kProvenFail x the signed result of this GPU model (`proven`, controller/plan/gpu_policy.h)
//                                                                       -> fail; below its ratio -> degraded
//   below `degraded_below`, above `degraded_above`, below `ratio` x the derived value -> degraded
//   fleet: below median - max(4 x 1.4826 x MAD, (1 - fleet_min_ratio) x median) over equal parts of all
//      nodes -> degraded; MAD
//     counts from eight values on (fewer show nothing about a spread), the rule from three
//   own history: below `history_min_ratio` x the median of what this very part did before -> degraded
//   measured, but not the metric; could not run here                    -> skipped
//   the step, or this metric of it (detail.not_looked_at), needs rights that the agent lacks -> not looked at
// A node of which only a share could be used is compared with equal shares; limits that are for a whole node
// (floors of what is derived from all its cores or memory) are left out, or hold for the cores that it had.
// A check that is not mandatory is degraded where it would fail.
std::map<std::string, std::vector<Check>> judge_measurements(const std::vector<MeasuredStep>& steps,
                                                             const Comparison& with = {});

// Directions between nodes, from the results of link steps. `node_by_address` translates what the kernel saw.
// Every pair of `nodes` has two records; one that was not measured is skipped.
std::vector<LinkRecord> link_matrix(const std::vector<MeasuredStep>& steps,
                                    const std::vector<std::string>& nodes,
                                    const std::map<std::string, std::string>& node_by_address);

// The limits of one metric are well formed.
Status check_limit(const std::string& metric, const Json& expectation);
// `expect` of a profile step is well formed: {metric: {min, max, degraded_below, degraded_above, derive,
// ratio, fail_ratio, of_raw_reads, otherwise_min, fleet_min_ratio, history_min_ratio, unit}}, all optional;
// known keys, numbers, min <= max, 0 < ratio <= 1, a value that can be derived. For the playbook checker.
Status check_expectations(const Json& expect);

}  // namespace muster
