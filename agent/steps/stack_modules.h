// Modules of the software stack above the operating system: scheduler, monitoring, further storage engines.
#pragma once

#include "agent/steps/modules.h"

namespace muster::steps {

// Slurm and Prometheus, asked through their own programs
StepModule slurm_node_module();
StepModule slurm_nodes_module();
StepModule slurm_mpi_module();
StepModule prometheus_targets_module();
// agent/storage
StepModule moosefs_drain_module();
StepModule nfs_server_module();

}  // namespace muster::steps
