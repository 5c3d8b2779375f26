// Checks of GPUs: a node with GPUs is not accepted by a profile whose checks of them did not run.
//
// A check of GPUs is a step that loads them (base/standin.h, loads_gpus) or reads their counters. Where the
// profile contains one that counts (without `mandatory: false`), it must have measured something on every
// node that has GPUs, whatever else of it stops a node (PlaybookStep::blocks): with a missing program, a
// library of the wrong version, or a driver that is not loaded it has not passed. GPUs that a lab stands in
// for are exempt in a lab, and fail outside one. Internal to the rules of acceptance. Thread: pure functions.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/wire.h"
#include "controller/report/verdict.h"

namespace muster {

struct GpuHosts {
  bool lab = false;
  // Of any node. Null: never seen, so the GPUs that the plan counts on are taken for real ones.
  std::function<const HardwareFacts*(const std::string& node)> facts;
  std::function<bool(const std::string& node)> adopted = {};  // never re-imaged; empty: none is
};

// Sets MeasuredStep::on_gpus and ::adopted: by the GPUs of its node, even where none are left of those that
// it was planned for; for a test of several nodes, by those of its members. `planned`: the action's steps as
// the plan has them. GPUs that a check with parts did not report become a part that could not be measured.
// Checks of GPUs that a lab stands in for become not applicable in a lab, and fail outside one.
void mark_gpu_steps(const std::vector<wire::Step>& planned, const GpuHosts& hosts,
                    std::vector<MeasuredStep>& steps);

// Whether one of these planned steps is a check of its node's own GPUs that counts.
bool checks_own_gpus(const Json& planned);

// A test over the GPUs of other nodes: when it did not run, the node that started it is not quarantined for
// that.
bool only_starts(const MeasuredStep& step);

// Whether the node is not accepted unless this step has measured something.
bool must_run(const MeasuredStep& step);
// Whether it measured something of what is expected of it, or found wrong data.
bool has_run(const MeasuredStep& step);
// Why this kind of GPU cannot be measured so at all (fp8 before Ada); "": it can.
std::string unsupported(const MeasuredStep& step);

// What the operator must do so that it runs next time, commands in backquotes. From `detail.missing` of its
// result: a program or library by name, "driver"; `detail.found`: the library of a different version that is
// installed instead.
std::string remedy(const MeasuredStep& step, const std::string& node);

// A test over the GPUs of several nodes that had to run and did not, not even in pairs, whether it could not
// be started or always failed (mpirun, ssh, a deadline): the members that are the reason (`detail.nodes`;
// where none is named, the node that started it) are not accepted; the others are degraded, since they are
// not tested and nothing is proven against them. A node that only starts it is degraded where no member is
// named, and not changed otherwise. `checks` by node, as judge_measurements() left them. False: this step is
// not such a test.
bool hold_unrun(std::map<std::string, std::vector<Check>>& checks, const MeasuredStep& step,
                const std::map<std::string, const HardwareFacts*>& facts);

}  // namespace muster
