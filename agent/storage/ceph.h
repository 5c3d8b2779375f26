// Asking a Ceph cluster through its own program, for the modules of agent/storage/ceph*.cc. Thread: blocking.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/steps/step_modules.h"

namespace muster::steps {

// `ceph ARGS` with the rights of this node's keys. An error when it fails or no monitor answers in time.
Result<std::string> ceph_text(StepContext& context, std::vector<std::string> args,
                              const std::string& input = "");
Result<Json> ceph_json(StepContext& context, std::vector<std::string> args, const std::string& input = "");

struct CephOsd {
  int64_t id = -1;
  std::string uuid, host;  // host: where the placement map has it below its root; "" when it is not there
  bool up = false, in = false;
};
// Without hosts it is one call of `ceph` less, which takes seconds on a busy machine.
Result<std::vector<CephOsd>> ceph_osds(StepContext& context, bool with_hosts = true);

// Asks until `lacking` says "" (then true) or the deadline passes (then its last words are in `said`). An
// error counts as not yet.
Status wait_for_ceph(StepContext& context, int64_t seconds,
                     const std::function<Result<std::string>()>& lacking);

}  // namespace muster::steps
