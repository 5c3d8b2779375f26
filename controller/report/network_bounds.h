// What networks can carry: bounds for TCP, for RDMA and for NCCL, from the ports that a measurement used.
// Internal to controller/report (derive() of controller/report/expected.h). Thread safety: stateless
// functions.
#pragma once

#include <string>
#include <vector>

#include "base/facts.h"
#include "base/json.h"
#include "controller/report/expected.h"
#include "controller/report/verdict.h"

namespace muster {

// Of links: sets MeasuredStep::kind, and in a TCP result detail.peer_speed_mbps, the speed of the partner's
// port as the partner's own measurements report it. Takes expand()ed steps.
void mark_paths(std::vector<MeasuredStep>& steps);

// Of a result of the kernel `link`, in MB/s, and of `rdma`, in Gb/s.
Derived nic_payload(const Json& result, const HardwareFacts* facts);
Derived rdma_payload(const Json& result);

// The ports that connected the GPUs.
struct NcclRails {
  int count = 0;
  double gbps = 0;           // that each can carry
  std::string which = {};    // if not all active ports, or not their rate: which, and why
  std::string unknown = {};  // why these are not known
};
// `reported`: detail.rails of a load on GPUs.
NcclRails nccl_rails(const Json& reported);

}  // namespace muster
