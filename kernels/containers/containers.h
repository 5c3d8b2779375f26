// What containers can use of this node's devices. Contract: kernels/common/kernels.h.
#pragma once

#include <string>

#include "kernels/common/kernels.h"

namespace muster::kernels {

struct ContainersOptions {
  double seconds = 240;                    // time budget of all engines together
  std::string program = "/proc/self/exe";  // this program, which becomes that of the test container
};
// One part per engine of this node: docker, podman, apptainer, enroot. Metrics: gpus and rdma_devices, those
// that a container can open; gpus_missing and rdma_missing, those of this node that it cannot, by name in
// detail.moved. detail.absent: the node has no such device, or the engine has no way to request it;
// detail.not_looked_at: {METRIC: why it was not requested}. An engine that starts no container at all is
// `unavailable`; with detail.not_looked_at where this user may not use it.
Measurement run_containers(const Files& files, Process& process, const ContainersOptions& options = {});

}  // namespace muster::kernels
