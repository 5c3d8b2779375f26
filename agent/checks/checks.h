// The measuring modules of acceptance. They run muster-accept and muster-mpi-check, which verify every
// result, and pass their JSON on unchanged: the controller judges (controller/report/verdict.h). A kernel
// that ran and found wrong data is a measurement like any other; an Error means that there is nothing to
// judge. Both programs are in /usr/lib/muster (or /usr/sbin, when installed from a package).
#pragma once

#include "agent/step.h"

namespace muster::checks {

StepModule accept_module();  // one kernel on this node: dgemm, stream, fio, checksum-write, checksum-read
StepModule accept_links_module();  // TCP to every peer, both directions; serves the peers meanwhile
StepModule accept_rdma_module();   // RDMA to every peer by perftest, rail by rail; serves the peers meanwhile
StepModule accept_mpi_module();    // all-reduce over several nodes, started from this one
StepModule accept_group_module();  // the same without MPI, led from this one
StepModule accept_group_serve_module();  // this node's part of it, led from a different node

// `check` of these modules: not applicable to GPU loads if the GPUs are a lab's stand-ins.
Result<CheckResult> has_what_it_measures(StepContext& context, const Json& params);

}  // namespace muster::checks
