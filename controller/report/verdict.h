// The rules of acceptance: what was found against the declared, what was measured against the expected.
//
// Every check gives the source of its expected value (Check::derivation). Nothing passes by omission:
// declared and not found is a failure; expected and not measured is skipped, which blocks acceptance if the
// check is mandatory; "not applicable" is only for what the spec does not declare. Thread safety: stateless
// functions, no I/O.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/facts.h"
#include "controller/report/history.h"
#include "controller/report/report.h"
#include "controller/spec/spec.h"

namespace muster {

// Compares hardware found with NodeSpec::hardware and NodeSpec::disks: counts must be equal, memory at least
// as declared (less what firmware and kernel keep), models match the glob, PCIe links as trained. `facts`
// null: never collected, so every declared part is skipped.
std::vector<Check> judge_hardware(const NodeSpec& node, const HardwareFacts* facts);

// One acceptance step of one node, as recorded in the journal.
struct MeasuredStep {
  std::string id = {};  // step id in the order: "acceptance/link[node02]"
  std::string node = {};
  std::string group = {};    // the playbook step's name before for_each: key for comparing nodes ("dgemm")
  std::string title = {};    // for people
  std::string subject = {};  // for_each element: peer, mount, drive; may be empty
  std::string like = {};     // compared only with parts that have the same value: a drive model; may be empty
  // Of the step event: applied | already | failed | not_applicable | not_looked_at | incomplete.
  std::string status = {};
  std::string message = {};
  bool mandatory = true;
  std::vector<std::string> blocks = {};   // PlaybookStep::blocks
  bool on_gpus = false;                   // about GPUs that are not stand-ins: controller/report/gpu_checks.h
  std::vector<std::string> adopted = {};  // if on_gpus: those of its nodes that are never re-imaged
  bool running = false;  // on a running host, measured without a controller (GpuHosts::running)
  // For a test of several nodes together, which is recorded for the node that started it: all its nodes, and,
  // if it did not pass, the rounds of tests in pairs that followed (controller/report/collective.h).
  std::vector<std::string> members = {};
  Json rounds = nullptr;
  // The share of its node that it was measured on (ShareFacts); null: the whole node. Set by the rules.
  const ShareFacts* share = nullptr;
  // Values of different nodes are compared where it is equal: the rate of the slower of a link's two ports,
  // the machine, what a file system is on; "": not known. Set by the rules.
  std::string kind = {};
  // True on virtual machines: a speed shows only that a program works, and is not taken for the hardware's.
  bool lab = false;
  // True if the node failed by itself: tests that it started do not count against the other nodes in them.
  bool own_affair = false;
  Json expect = nullptr;  // from the acceptance profile, see check_expectations()
  // The kernel's measurement (kernels/common/kernels.h: "outcome", "metrics", "blame", "detail"), or several
  // of them from one step: {"parts": [{"subject", "like"?, "result"}]}.
  Json result = nullptr;
};

// The rates of ports that the spec declares, in Gb/s; 0: not declared.
struct DeclaredRates {
  double rails = 0, provisioning = 0;
};

// What measurements are compared with, besides the numbers of the profile.
struct Comparison {
  // True: judge one node's own results by the absolute limits only, as at the end of one of the executor's
  // orders. What needs all nodes (fleet, history) or has two ends (links) is judged when the run is over, by
  // the same function with this set to false.
  bool own_only = false;
  const History* history = nullptr;
  std::map<std::string, const HardwareFacts*> facts = {};
  std::vector<DriveModel> drives = {};  // known speeds by model; the first match wins
  DeclaredRates rates = {};
};

// Per node, in the order given: one check that the data was right ("dgemm/data"), then one per expected
// metric. The verdict is the worst of:
//   wrong data                                                          -> fail
//   a step that must run lacks something it needs (detail.missing)      -> fail
//   a check of GPUs that did not run (controller/report/gpu_checks.h)   -> skipped, and mandatory
//   below `min`, above `max`, below `fail_ratio` x the derived value    -> fail: it does not do its work
//   below `of_raw_reads` x what the drives under the file system read in the same run, side by side; below
//      `otherwise_min` where these were not measured                    -> fail
//   `derive: drive_models`: as any derived value, from the models of the drives under the file system; where
//      a model is not known, only `min` applies
//   below kProvenFail x the signed result of this GPU model (`proven`, controller/plan/gpu_policy.h)
//                                                                       -> fail; below its ratio -> degraded
//   below `degraded_below`, above `degraded_above`, below `ratio` x the derived value -> degraded
//   fleet: below median - max(4 x 1.4826 x MAD, (1 - fleet_min_ratio) x median) over equal parts of all
//      nodes (links: those whose slower port is as fast) -> degraded; the rule needs at least three values,
//      and uses MAD only if there are at least eight (fewer show nothing about a spread)
//   own history: below `history_min_ratio` x the median of what this very part did before -> degraded
//   the step did not measure this metric, or could not run here, or its value is not what it is named for
//      (memory bandwidth from arrays that fit the cache)                -> skipped
//   a part of the inventory that a measurement of all its kind did not see (controller/report/vanished.h)
//                                                                       -> fail
//   it has rules that need a figure, and none of its rules had any     -> not judged
//   a port or PCI Express link that came up slower than it can be      -> degraded, by port_rates.h and
//      pcie_links.h
//   the step, or this metric of it (detail.not_looked_at), needs rights that the agent lacks -> not looked at
//   within its limits, but the count may be too low (detail.at_least)  -> not looked at
// A node of which only a share could be used is compared with equal shares; limits for a whole node (floors
// derived from all its cores or memory) are left out, or computed for the cores that it had. A check that is
// not mandatory is degraded where it would fail.
std::map<std::string, std::vector<Check>> judge_measurements(const std::vector<MeasuredStep>& steps,
                                                             const Comparison& with = {});

// Returns both directions of every pair of `nodes`, from the results of link steps; one that was not measured
// is skipped. `node_by_address` maps the addresses that kernels report to nodes.
std::vector<LinkRecord> link_matrix(const std::vector<MeasuredStep>& steps,
                                    const std::vector<std::string>& nodes,
                                    const std::map<std::string, std::string>& node_by_address);

Status check_limit(const std::string& metric, const Json& expectation);
// Checks `expect` of a profile step for the playbook checker: {metric: {min, max, degraded_below,
// degraded_above, derive, ratio, fail_ratio, of_raw_reads, otherwise_min, fleet_min_ratio, history_min_ratio,
// unit}}, all optional; known keys, numbers, min <= max, 0 < ratio <= 1, a value that can be derived.
Status check_expectations(const Json& expect);

// Marks checks of GPUs that a lab simulates: title, found value and reason (which becomes the node's) each
// contain SIMULATED GPU; verdicts stay. Takes the checks of one node: steps "gpu ...", metrics "gpu..." and
// "nvlink..." of other steps (titles kept), the hardware check of GPUs, and titles already marked. Does
// nothing unless `facts` has a stand-in.
void say_simulated(const HardwareFacts& facts, std::vector<Check>& checks);

}  // namespace muster
