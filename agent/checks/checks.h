// The measuring modules of acceptance. They run muster-accept and muster-mpi-check, which verify every
// result, and pass their JSON on unchanged; the controller evaluates it (controller/report/verdict.h). A
// kernel that ran and found wrong data is a normal measurement; an Error means that there is none to
// evaluate. Both programs are in /usr/lib/muster (or /usr/sbin, when installed from a package).
#pragma once

#include "agent/core/step.h"

namespace muster::checks {

StepModule accept_module();  // one kernel on this node: dgemm, stream, fio, checksum-write, checksum-read
StepModule accept_links_module();  // TCP to every peer, both directions; also serves the peers
StepModule accept_rdma_module();   // RDMA to every peer by perftest, rail by rail; also serves the peers
StepModule accept_mpi_module();    // a load across several nodes, such as an all-reduce; starts here
StepModule accept_group_module();  // the same without MPI; this node is the leader
StepModule accept_group_serve_module();  // this node's part of such a load if a different node is the leader

}  // namespace muster::checks
