// Queries to a Ceph cluster through its own program, for the modules of agent/storage/ceph*.cc. Thread:
// blocking.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/steps/step_modules.h"

namespace muster::steps {

// Runs `ceph ARGS` with this node's keys. Returns an error if it fails or no monitor answers in time.
Result<std::string> ceph_text(StepContext& context, std::vector<std::string> args,
                              const std::string& input = "");
Result<Json> ceph_json(StepContext& context, std::vector<std::string> args, const std::string& input = "");

struct CephOsd {
  int64_t id = -1;
  std::string uuid, host;  // host: its host below the root of the CRUSH map; "" if it has none
  bool up = false, in = false;
};
// `with_hosts` false leaves `host` empty and saves a call of `ceph`, which takes seconds on a busy machine.
Result<std::vector<CephOsd>> ceph_osds(StepContext& context, bool with_hosts = true);

// Runs `ceph osd QUESTION ID...` ("safe-to-destroy" or "ok-to-stop"); returns "" if yes, else why not.
Result<std::string> ceph_objection(StepContext& context, const char* question,
                                   const std::vector<int64_t>& osds);

struct CephMove {
  std::vector<CephOsd> leaving, staying;
  int64_t copies = 2;
};
// Returns "" if the data fits on those that stay; else the reason, such as an OSD that would be too full.
// `dump`, `df`: output of `ceph osd dump` and `ceph osd df`, whose sizes are in KiB. Pure.
std::string ceph_lacks_room(const Json& dump, const Json& df, const CephMove& move);

}  // namespace muster::steps
