// Every step module of the agent, one line each. Nothing registers itself.
#include "agent/checks/checks.h"
#include "agent/step.h"
#include "agent/steps/modules.h"
#include "agent/steps/stack_modules.h"

namespace muster {

const std::vector<StepModule>& step_modules() {
  using namespace checks;
  using namespace steps;
  static const std::vector<StepModule> modules = {
      accept_module(),
      accept_links_module(),
      accept_rdma_module(),
      accept_mpi_module(),
      acs_module(),
      apt_repository_module(),
      archive_module(),
      ceph_daemons_module(),
      ceph_drain_module(),
      ceph_fs_module(),
      ceph_left_module(),
      ceph_members_module(),
      ceph_mon_module(),
      ceph_mount_module(),
      ceph_osds_module(),
      command_module(),
      config_module(),
      directory_module(),
      download_module(),
      external_mount_module(),
      file_module(),
      filesystem_module(),
      group_module(),
      hostname_module(),
      kernel_command_line_module(),
      kernel_module_module(),
      limits_module(),
      line_module(),
      moosefs_chunkserver_module(),
      moosefs_disks_module(),
      moosefs_drain_module(),
      moosefs_master_module(),
      moosefs_members_module(),
      moosefs_metalogger_module(),
      moosefs_mount_module(),
      moosefs_policy_module(),
      mount_module(),
      mount_flags_module(),
      nccl_conf_module(),
      networks_module(),
      nfs_server_module(),
      not_applicable_module(),
      package_module(),
      partition_module(),
      probe_module(),
      prometheus_targets_module(),
      raid_module(),
      rail_qos_module(),
      rdma_ports_module(),
      reboot_module(),
      service_module(),
      shared_read_module(),
      shared_write_module(),
      slurm_mpi_module(),
      slurm_node_module(),
      slurm_nodes_module(),
      sshd_module(),
      ssh_probe_module(),
      sysctl_module(),
      sys_values_module(),
      timer_module(),
      udev_rule_module(),
      ufw_module(),
      user_module(),
      wait_for_module(),
  };
  return modules;
}

const StepModule* find_step_module(const std::string& name) {
  for (const auto& module : step_modules())
    if (module.name == name) return &module;
  return nullptr;
}

}  // namespace muster
