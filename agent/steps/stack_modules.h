// Step modules of the software stack above the operating system: scheduler, monitoring, storage engines.
#pragma once

#include "agent/steps/step_modules.h"

namespace muster::steps {

// Slurm and Prometheus, through their own programs
StepModule slurm_node_module();
StepModule slurm_nodes_module();
StepModule slurm_mpi_module();
StepModule prometheus_targets_module();
// agent/storage
StepModule ceph_mon_module();
StepModule ceph_daemons_module();
StepModule ceph_osds_module();
StepModule ceph_mount_module();
StepModule ceph_fs_module();
StepModule ceph_members_module();
StepModule ceph_left_module();
StepModule ceph_drain_module();
StepModule ceph_noout_module();
StepModule moosefs_drain_module();
StepModule moosefs_maintenance_module();
StepModule moosefs_heir_module();
StepModule moosefs_retired_module();
StepModule nfs_server_module();
StepModule external_mount_module();

}  // namespace muster::steps
