// Every step module of the agent, one line each: storage, then the rest. There is no static registration.
#include <algorithm>
#include <iterator>
#include <string_view>

#include "agent/checks/checks.h"
#include "agent/core/step.h"
#include "agent/steps/files/file_modules.h"
#include "agent/steps/services/service_module.h"
#include "agent/steps/step_modules.h"

namespace muster {

namespace {

using namespace checks;
using namespace steps;

std::vector<StepModule> storage_modules() {
  return {
      ceph_daemons_module(),        ceph_drain_module(),     ceph_fs_module(),
      ceph_left_module(),           ceph_members_module(),   ceph_mon_module(),
      ceph_mount_module(),          ceph_noout_module(),     ceph_osds_module(),
      external_mount_module(),      filesystem_module(),     moosefs_chunkserver_module(),
      moosefs_disks_module(),       moosefs_drain_module(),  moosefs_heir_module(),
      moosefs_maintenance_module(), moosefs_master_module(), moosefs_members_module(),
      moosefs_metalogger_module(),  moosefs_mount_module(),  moosefs_policy_module(),
      moosefs_retired_module(),     mount_module(),          mount_flags_module(),
      nfs_server_module(),          partition_module(),      raid_module(),
      shared_read_module(),         shared_write_module(),
  };
}

std::vector<StepModule> other_modules() {
  return {
      accept_module(),
      accept_links_module(),
      accept_rdma_module(),
      accept_mpi_module(),
      accept_group_module(),
      accept_group_serve_module(),
      acs_module(),
      apt_mirror_module(),
      apt_repository_module(),
      archive_module(),
      cdi_module(),
      command_module(),
      config_module(),
      directory_module(),
      kept_directory_module(),
      docker_settings_module(),
      download_module(),
      file_module(),
      group_module(),
      hostname_module(),
      kernel_command_line_module(),
      kernel_module_module(),
      limits_module(),
      line_module(),
      nccl_conf_module(),
      networks_module(),
      not_applicable_module(),
      own_devices_module(),
      package_module(),
      probe_module(),
      prometheus_targets_module(),
      rail_qos_module(),
      rdma_ports_module(),
      reboot_module(),
      service_module(),
      slot_module(),
      slurm_cgroups_module(),
      slurm_mpi_module(),
      slurm_node_module(),
      slurm_nodes_module(),
      sshd_module(),
      ssh_probe_module(),
      subordinate_ids_module(),
      sysctl_module(),
      sys_values_module(),
      timer_module(),
      time_servers_module(),
      udev_rule_module(),
      ufw_module(),
      user_module(),
      wait_for_module(),
  };
}

// StepModule::only_reads.
constexpr std::string_view kOnlyRead[] = {"config",   "directory",  "file",   "group",
                                          "hostname", "line",       "mount",  "mount_flags",
                                          "service",  "sys_values", "sysctl", "user"};

}  // namespace

const std::vector<StepModule>& step_modules() {
  static const std::vector<StepModule> modules = [] {
    std::vector<StepModule> all = storage_modules();
    for (auto& module : other_modules()) all.push_back(std::move(module));
    for (StepModule& module : all)
      module.only_reads =
          std::find(std::begin(kOnlyRead), std::end(kOnlyRead), module.name) != std::end(kOnlyRead);
    std::sort(all.begin(), all.end(),
              [](const StepModule& a, const StepModule& b) { return a.name < b.name; });
    return all;
  }();
  return modules;
}

const StepModule* find_step_module(const std::string& name) {
  for (const auto& module : step_modules())
    if (module.name == name) return &module;
  return nullptr;
}

}  // namespace muster
