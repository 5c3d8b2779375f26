// GPU checks: a profile accepts a node that has GPUs only if its GPU checks ran there.
//
// A GPU check is a step that loads GPUs (base/standin.h, loads_gpus) or reads their counters. If the profile
// contains one that counts (without `mandatory: false`), it must have measured something on every node that
// has GPUs, whichever of its results are mandatory (PlaybookStep::blocks): with a missing program, a library
// of the wrong version, or a driver that is not loaded, it has not passed. Checks of stand-ins are
// exempt in a lab, and fail elsewhere. Internal to the acceptance rules. Thread safety: stateless functions.
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
  // The inventory of any node. Null: never seen; then the GPUs that the plan assumes count as real ones.
  std::function<const HardwareFacts*(const std::string& node)> facts;
  std::function<bool(const std::string& node)> adopted = {};  // true: never re-imaged; unset: no node is
  // True: a running host that a command measures by itself, without a controller; unset: no node is.
  std::function<bool(const std::string& node)> running = {};
};

// Sets MeasuredStep::on_gpus, ::adopted and ::running, from the GPUs of the step's node (for a test of
// several nodes, of its members), even if none are left of the GPUs that it was planned for. `planned`: the
// action's steps as in the plan. GPUs that a check with parts did not report are added as parts that could
// not be measured. Checks of stand-in GPUs become not applicable in a lab, and fail elsewhere.
void mark_gpu_steps(const std::vector<wire::Step>& planned, const GpuHosts& hosts,
                    std::vector<MeasuredStep>& steps);

// True if one of these planned steps is a check of its node's own GPUs and counts (see above).
bool checks_own_gpus(const Json& planned);

// A test over other nodes' GPUs: if it did not run, the node that started it is not quarantined for that.
bool only_starts(const MeasuredStep& step);

// True if the node is not accepted unless this step has measured something.
bool must_run(const MeasuredStep& step);
// True if the step measured at least one of the expected values, or found wrong data.
bool has_run(const MeasuredStep& step);
// Returns why this kind of GPU cannot run this test at all (fp8 before Ada); "" if it can.
std::string unsupported(const MeasuredStep& step);

// What the operator must do to make the step run next time, with commands in backquotes; from
// `detail.missing` (a program or library by name, or "driver") and `detail.found` (the library's other
// version).
std::string remedy(const MeasuredStep& step, const std::string& node);

// A test over the GPUs of several nodes that had to run and did not, not even in pairs (mpirun, ssh, a
// deadline). The members that are the reason (`detail.nodes`; if none, the node that started it) are not
// accepted; the other members are degraded: not tested, but not proven faulty. A starting node that is no
// member is degraded if no member is named, else unchanged. `checks`, by node: as judge_measurements() left
// them. Returns false for any other step.
bool hold_unrun(std::map<std::string, std::vector<Check>>& checks, const MeasuredStep& step,
                const std::map<std::string, const HardwareFacts*>& facts);

}  // namespace muster
