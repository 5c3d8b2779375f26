// kernel_module: loads kernel modules now and at every boot, blacklists others, and sets options.
#include <algorithm>

#include <fmt/format.h>

#include "agent/core/parameters.h"
#include "agent/steps/files/own_file.h"

namespace muster::steps {
namespace {

struct WantedKernelModule {
  std::string name = "base";
  Texts load, blacklist;
  std::map<std::string, Json> options;
  bool now = true;
  OwnFile load_file = {}, settings_file = {};
};
MUSTER_PARAMETERS(
    WantedKernelModule, optional(name, "used in file names: muster-NAME.conf"),
    optional(load, "modules to load, now and at every boot"),
    optional(blacklist,
             "modules that must not be loaded, either for a device or by name; those not in use "
             "are unloaded now"),
    optional(options, "module -> its options, as in modprobe.d(5)"),
    optional(now, "false: the settings take effect only at the next boot"))

std::string underscored(std::string module) {
  std::replace(module.begin(), module.end(), '-', '_');
  return module;
}

Status complete_kernel_module(const StepContext&, WantedKernelModule& want) {
  TRY_(check_name(want.name, "kernel_module"));
  if (want.load.empty() && want.blacklist.empty() && want.options.empty())
    return fail(Code::invalid, "kernel_module: nothing to load, blacklist or set");
  std::string load, settings;
  for (const auto& module : want.load) {
    TRY_(check_name(module, "kernel_module"));
    load += module + "\n";
  }
  for (const auto& module : want.blacklist) {
    TRY_(check_name(module, "kernel_module"));
    for (const auto& other : want.load)
      if (underscored(other) == underscored(module))
        return fail(Code::invalid, "kernel_module: '" + module + "' is both loaded and blacklisted");
    // "blacklist" only stops loading by alias; "install" also stops loading by name.
    settings += fmt::format("blacklist {0}\ninstall {0} /bin/false\n", module);
  }
  for (const auto& [module, value] : want.options) {
    TRY_(check_name(module, "kernel_module"));
    const std::string text = value_text(value);
    if (text.find('\n') != std::string::npos)
      return fail(Code::invalid, "kernel_module: 'options' must not contain a line break");
    settings += "options " + module + " " + text + "\n";
  }
  want.load_file = {"/etc/modules-load.d/muster-" + want.name + ".conf",
                    load.empty() ? "" : "# Written by muster.\n" + load, 0644};
  want.settings_file = {"/etc/modprobe.d/muster-" + want.name + ".conf",
                        settings.empty() ? "" : "# Written by muster.\n" + settings, 0644};
  return Ok{};
}

bool is_loaded(const Files& files, const std::string& module) {
  return files.exists("/sys/module/" + underscored(module));
}

// True for a module that is built into the kernel: without parameters it has no folder in /sys/module.
bool is_built_in(const Files& files, const std::string& module) {
  const auto text =
      files.read("/lib/modules/" + files.read_line("/proc/sys/kernel/osrelease") + "/modules.builtin");
  if (!text.ok()) return false;
  for (const auto& line : split_lines(*text)) {
    const std::string file = underscored(line.substr(line.rfind('/') + 1));
    if (file == underscored(module) + ".ko") return true;
  }
  return false;
}

std::string debt(const WantedKernelModule& want) { return "initramfs-" + want.name; }

Result<CheckResult> check_kernel_module(StepContext& context, const WantedKernelModule& want) {
  Diff diff;
  add_difference(context.files, want.load_file, diff);
  add_difference(context.files, want.settings_file, diff);
  if (has_pending_reload(context.files, debt(want))) diff.add("the initial RAM disk is not up to date");
  if (!is_booted(context.files) || !want.now) return diff.result();
  for (const auto& module : want.load)
    if (!is_loaded(context.files, module) && !is_built_in(context.files, module))
      diff.add(module + " is not loaded");
  for (const auto& module : want.blacklist)
    if (is_loaded(context.files, module) &&
        !context.files.exists("/run/muster/reboot/kernel_module-" + want.name))
      diff.add(module + " is loaded");
  return diff.result();
}

Status write_files(StepContext& context, const WantedKernelModule& want) {
  TRY_(put(context.files, want.load_file));
  const bool changed = differs_from(context.files, want.settings_file);
  // With initramfs-tools, the initial RAM disk contains a copy of modprobe.d. muster's own contains none.
  const bool has_tool = context.files.exists("/usr/sbin/update-initramfs");
  if (changed && has_tool) TRY_(mark_pending(context.files, debt(want)));
  TRY_(put(context.files, want.settings_file));
  if (!has_pending_reload(context.files, debt(want))) return Ok{};
  TRY_(run_tool(context, {"update-initramfs", "-u"}, 5 * kMinute));
  return clear_pending(context.files, debt(want));
}

Status apply_kernel_module(StepContext& context, const WantedKernelModule& want) {
  TRY_(write_files(context, want));
  if (!is_booted(context.files) || !want.now) return Ok{};
  for (const auto& module : want.load) {
    if (is_loaded(context.files, module)) continue;
    TRY_(run_tool(context, {"modprobe", module}));
  }
  std::vector<std::string> busy;
  for (const auto& module : want.blacklist) {
    if (!is_loaded(context.files, module)) continue;
    if (!run_tool(context, {"rmmod", underscored(module)}).ok()) busy.push_back(module);
  }
  if (busy.empty()) return Ok{};
  return request_reboot(context.files, "kernel_module-" + want.name,
                        "in use, but blacklisted: " + join(busy, ", "));
}

}  // namespace

StepModule kernel_module_module() {
  return step_module<WantedKernelModule>({
      .name = "kernel_module",
      .help = "Loads kernel modules now and at every boot, blacklists others, and sets options. If a "
              "blacklisted module is in use, the step requests a restart (see `reboot`).",
      .check = check_kernel_module,
      .apply = apply_kernel_module,
      .complete = complete_kernel_module,
  });
}

}  // namespace muster::steps
