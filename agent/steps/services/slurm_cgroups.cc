// slurm_cgroups: boots the node with the version of cgroups that its release of Slurm reads.
//
// A release that reads version 1 only (base/slurm_release.h) runs on a system with version 2, and each of its
// jobs fails there ("Plugin initialization failed"). Such a node gets systemd's kernel argument for version
// 1, by the module kernel_command_line, which requests a restart.
#include <fmt/format.h>

#include <optional>

#include "agent/steps/files/own_file.h"
#include "agent/steps/step_modules.h"
#include "base/kernel_line.h"
#include "base/slurm_release.h"

namespace muster::steps {
namespace {

constexpr const char* kArgument = "systemd.unified_cgroup_hierarchy=0";
constexpr const char* kUnified = "/sys/fs/cgroup/cgroup.controllers";

Json line() { return {{"name", "slurm"}, {"present", {kArgument}}}; }

bool booted_with_it(const Files& files) {
  return kernel_argument(files.read_line("/proc/cmdline"), "systemd.unified_cgroup_hierarchy") == kArgument;
}

// Nothing if the system's cgroups suit it.
Result<std::optional<int>> unsuited_release(StepContext& context) {
  if (!context.files.exists(kUnified)) return std::optional<int>();
  TRY(const std::string version, run_tool(context, {"slurmd", "-V"}));
  const auto release = slurm::release_of(version);
  return release && !slurm::reads_unified_cgroups(*release) ? release : std::nullopt;
}

Result<CheckResult> check_slurm_cgroups(StepContext& context, const Json&) {
  if (!is_booted(context.files))
    return CheckResult{Holds::not_applicable, "an image has no cgroups; the step is checked on nodes"};
  TRY(const auto release, unsuited_release(context));
  if (!release) return holds();
  const std::string why = fmt::format(
      "Slurm {} reads cgroups of version 1 only, and the system has version 2", slurm::name_of(*release));
  if (booted_with_it(context.files))
    return fail(Code::conflict, fmt::format("{}, although it was started with {}", why, kArgument));
  TRY(CheckResult out, context.module("kernel_command_line")->check(context, line()));
  if (out.holds == Holds::no) out.diff = why + ": " + out.diff;
  return out;
}

Status apply_slurm_cgroups(StepContext& context, const Json&) {
  TRY(const auto release, unsuited_release(context));
  return release ? context.module("kernel_command_line")->apply(context, line()) : Status(Ok{});
}

}  // namespace

StepModule slurm_cgroups_module() {
  StepModule m;
  m.name = "slurm_cgroups";
  m.help =
      "Boots the node with cgroups of version 1 if its release of Slurm reads no others (before 22.05): sets "
      "systemd.unified_cgroup_hierarchy=0 as `kernel_command_line` does, and requests a restart (see "
      "`reboot`).";
  m.check = check_slurm_cgroups;
  m.apply = apply_slurm_cgroups;
  return m;
}

}  // namespace muster::steps
