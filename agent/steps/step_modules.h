// The step modules of agent/steps, agent/storage and agent/checks. One function per module;
// agent/all_drivers.cc lists them.
#pragma once

#include <string>

#include "agent/core/step.h"
#include "base/split.h"

namespace muster::steps {

// agent/steps: configuration
StepModule package_module();
StepModule kept_directory_module();
StepModule user_module();
StepModule group_module();
StepModule sysctl_module();
StepModule hostname_module();
StepModule own_devices_module();
StepModule command_module();
StepModule ufw_module();
StepModule sshd_module();
StepModule apt_mirror_module();
StepModule apt_repository_module();
StepModule archive_module();
StepModule config_module();
StepModule docker_settings_module();
StepModule download_module();
StepModule kernel_command_line_module();
StepModule kernel_module_module();
StepModule limits_module();
StepModule reboot_module();
StepModule slot_module();
StepModule subordinate_ids_module();
StepModule timer_module();
StepModule udev_rule_module();
StepModule acs_module();
StepModule networks_module();
StepModule rail_qos_module();
StepModule nccl_conf_module();
StepModule cdi_module();
StepModule sys_values_module();
StepModule time_servers_module();
// agent/steps: disks
StepModule partition_module();
StepModule raid_module();
StepModule filesystem_module();
StepModule mount_module();
StepModule mount_flags_module();
// agent/steps: modules that only test
StepModule not_applicable_module();
StepModule probe_module();
StepModule rdma_ports_module();
StepModule wait_for_module();
StepModule ssh_probe_module();
// agent/storage
StepModule moosefs_disks_module();
StepModule moosefs_master_module();
StepModule moosefs_metalogger_module();
StepModule moosefs_chunkserver_module();
StepModule moosefs_mount_module();
StepModule moosefs_policy_module();
StepModule moosefs_members_module();
StepModule shared_write_module();
StepModule shared_read_module();
// Slurm and Prometheus, through their own programs
StepModule slurm_cgroups_module();
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

// Read a member; `fallback` if it is absent or an empty text.
std::string text_of(const Json& params, const char* key, const std::string& fallback = "");
int64_t int_of(const Json& params, const char* key, int64_t fallback);
// By reference into `params`, so it may be iterated over; empty if absent.
const Json& object_of(const Json& params, const char* key);
std::string join(const std::vector<std::string>& words, const std::string& separator);

inline CheckResult holds() { return {Holds::yes, ""}; }
inline CheckResult differs(std::string diff) { return {Holds::no, std::move(diff)}; }
// Collects differences; empty means that the state holds.
class Diff {
 public:
  void add(const std::string& text) { text_ += (text_.empty() ? "" : "; ") + text; }
  CheckResult result() const { return text_.empty() ? holds() : differs(text_); }
  bool empty() const { return text_.empty(); }

 private:
  std::string text_;
};
// A text as it is, any other value as JSON.
std::string value_text(const Json& value);
// Reports progress, one line, without secrets: modules use this, not StepContext::say.
void say(const StepContext& context, const std::string& text);
bool is_cancelled(const StepContext& context);
// Holds once `lacking` returns ""; it is called again after StepContext::pause. Its errors are retried too:
// a server may be starting.
Result<CheckResult> wait_until(StepContext& context, int64_t seconds,
                               const std::function<Result<std::string>()>& lacking);
// The output of a program that must succeed. systemctl has at least 3 minutes.
Result<std::string> run_tool(StepContext& context, std::vector<std::string> argv,
                             DurationMs deadline = 60 * kSecond);

}  // namespace muster::steps
