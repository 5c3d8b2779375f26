// sysctl: sets kernel parameters, now and at every boot, in /proc/sys and in muster's own file in
// /etc/sysctl.d. Starts no process.
#include <algorithm>

#include "agent/core/parameters.h"
#include "agent/steps/files/own_file.h"
#include "agent/steps/system/sysctl_value.h"
#include "base/json_dump.h"

namespace muster::steps {
namespace {

std::string value_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : dump_json(value);
}

struct WantedSysctl {
  std::string name = "base";
  std::map<std::string, Json> values;
  bool optional = false;
};
MUSTER_PARAMETERS(WantedSysctl, optional(name, "used in the file name: /etc/sysctl.d/zz-muster-NAME.conf"),
                  required(values, "parameter -> value"),
                  optional(optional, "skip parameters that the kernel does not have"))

// At boot the last file wins: this one is sorted after a site's 90-*.conf and Debian's 99-sysctl.conf.
OwnFile own_file(const WantedSysctl& want) {
  std::string text = "# Written by muster.\n";
  for (const auto& [key, value] : want.values) text += key + " = " + value_text(value) + "\n";
  return {"/etc/sysctl.d/zz-muster-" + want.name + ".conf", text, 0644};
}

// The file of earlier versions of muster. It must not exist.
OwnFile earlier_file(const WantedSysctl& want) {
  return {"/etc/sysctl.d/60-muster-" + want.name + ".conf", "", 0644};
}

// True for a parameter that must be skipped: `optional` is set, and this kernel does not have it.
bool is_left_out(const StepContext& context, const WantedSysctl& want, const std::string& key) {
  return want.optional && !context.files.exists(sysctl_path(key));
}

Result<CheckResult> check_sysctl(StepContext& context, const WantedSysctl& want) {
  Diff diff;
  bool any = false;
  for (const auto& [key, value] : want.values) {
    if (is_left_out(context, want, key)) continue;
    any = true;
    if (!context.files.exists(sysctl_path(key)))
      return fail(Code::not_found, "the kernel has no parameter " + key);
    const std::string have = context.files.read_line(sysctl_path(key));
    if (!sysctl_has(key, have, value_text(value)))
      diff.add(key + ": " + join(split(have, '\t'), " ") + " -> " + value_text(value));
  }
  if (!any && want.optional)
    return CheckResult{Holds::not_applicable, "this kernel has none of these parameters"};
  add_difference(context.files, own_file(want), diff);
  add_difference(context.files, earlier_file(want), diff);
  return diff.result();
}

Status apply_sysctl(StepContext& context, const WantedSysctl& want) {
  TRY_(put(context.files, own_file(want)));
  TRY_(put(context.files, earlier_file(want)));
  for (const auto& [key, value] : want.values) {
    if (is_left_out(context, want, key)) continue;
    const std::string path = sysctl_path(key), text = value_text(value);
    if (sysctl_has(key, context.files.read_line(path), text)) continue;
    if (auto written = context.files.write_raw(path, text + "\n"); !written.ok())
      return std::move(written).error().with(key);
  }
  return Ok{};
}

}  // namespace

StepModule sysctl_module() {
  return step_module<WantedSysctl>({
      .name = "sysctl",
      .help = "Sets kernel parameters, now and at every boot, in muster's own file.",
      .check = check_sysctl,
      .apply = apply_sysctl,
  });
}

}  // namespace muster::steps
