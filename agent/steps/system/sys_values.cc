// sys_values: sets values in /sys, now and at every boot, such as the CPU governor or transparent huge pages.
// Writes the files themselves, and a tmpfiles.d(5) file that a unit applies at boot once drivers are loaded.
//
// A pattern may match many files, which must all have the value. A pattern that matches nothing is not a
// failure: a virtual machine has no frequency scaling. A value that the kernel does not offer is a failure.
#include <fmt/format.h>

#include <algorithm>

#include "agent/core/parameters.h"
#include "agent/steps/files/own_file.h"

namespace muster::steps {
namespace {

bool matches(const std::string& pattern, const std::string& text) {
  const size_t star = pattern.find('*');
  if (star == std::string::npos) return pattern == text;
  const std::string tail = pattern.substr(star + 1);
  return text.size() + 1 >= pattern.size() && text.compare(0, star, pattern, 0, star) == 0 &&
         text.compare(text.size() - tail.size(), tail.size(), tail) == 0;
}

// Returns the existing files that match; at most one '*' in each component of the path.
std::vector<std::string> files_of(const Files& files, const std::string& pattern) {
  std::vector<std::string> found = {""};
  for (const auto& part : split(pattern, '/')) {
    std::vector<std::string> next;
    for (const auto& folder : found) {
      if (part.find('*') == std::string::npos) {
        next.push_back(folder + "/" + part);
        continue;
      }
      for (const auto& name : files.list(folder))
        if (matches(part, name)) next.push_back(folder + "/" + name);
    }
    found = std::move(next);
  }
  found.erase(std::remove_if(found.begin(), found.end(),
                             [&](const std::string& path) { return !files.exists(path); }),
              found.end());
  return found;
}

// "always [madvise] never" -> "madvise"; a plain value is itself.
std::string chosen(const std::string& text) {
  const size_t open = text.find('['), close = text.find(']', open == std::string::npos ? 0 : open);
  return open == std::string::npos || close == std::string::npos ? text
                                                                 : text.substr(open + 1, close - open - 1);
}

struct WantedSysValues {
  std::string name;
  std::map<std::string, std::string> values;  // by pattern
  std::string unit_name = {};
  OwnFile config = {}, unit = {};
};
MUSTER_PARAMETERS(WantedSysValues,
                  required(name, "used in the file name: /etc/tmpfiles.d/60-muster-NAME.conf"),
                  required(values, "path below /sys (at most one '*' per component) -> value"))

Status complete_sys_values(const StepContext&, WantedSysValues& want) {
  TRY_(check_name(want.name, "sys_values"));
  std::string lines = "# Written by muster.\n";
  for (const auto& [path, text] : want.values) {
    if (!path.starts_with("/sys/") || path.find_first_of(" \t\n%") != std::string::npos ||
        path.find("..") != std::string::npos)
      return fail(Code::invalid, fmt::format("sys_values: '{}' is not a path below /sys", path));
    if (text.empty() || text.find_first_of("\n%") != std::string::npos)
      return fail(Code::invalid, fmt::format("sys_values: {}: the value must be text on one line", path));
    lines += fmt::format("w {} - - - - {}\n", path, text);
  }
  const std::string config = fmt::format("/etc/tmpfiles.d/60-muster-{}.conf", want.name);
  want.config = {config, lines, 0644};
  want.unit_name = fmt::format("muster-sys-{}.service", want.name);
  want.unit = {"/etc/systemd/system/" + want.unit_name,
               fmt::format("# Written by muster. Drivers that come late miss the first time.\n[Unit]\n"
                           "Description=Values in /sys: {}\nAfter=systemd-modules-load.service\n"
                           "\n[Service]\nType=oneshot\nRemainAfterExit=yes\n"
                           "ExecStart=/usr/bin/systemd-tmpfiles --create {}\n\n[Install]\n"
                           "WantedBy=multi-user.target\n",
                           want.name, config),
               0644};
  return Ok{};
}

Json unit_params(const WantedSysValues& want) {
  return {{"names", {want.unit_name}}, {"enabled", true}, {"running", false}};
}

// Adds each pattern whose files have a different value. Returns how many files match the patterns.
size_t values_diff(const Files& files, const WantedSysValues& want, Diff& diff) {
  size_t seen = 0;
  for (const auto& [pattern, value] : want.values) {
    size_t wrong = 0;
    std::string first;
    for (const auto& path : files_of(files, pattern)) {
      ++seen;
      const std::string now = chosen(files.read_line(path));
      if (now != value && wrong++ == 0) first = now;
    }
    if (wrong > 0)
      diff.add(fmt::format("{} (in {} of the files): {} -> {}", pattern, wrong,
                           first.empty() ? "none" : first, value));
  }
  return seen;
}

Result<CheckResult> check_sys_values(StepContext& context, const WantedSysValues& want) {
  if (!is_booted(context.files))
    return CheckResult{Holds::not_applicable, "an image has no running kernel; the step is checked on nodes"};
  Diff diff;
  if (values_diff(context.files, want, diff) == 0) {
    std::string patterns;
    for (const auto& [pattern, value] : want.values) patterns += (patterns.empty() ? "" : ", ") + pattern;
    return CheckResult{Holds::not_applicable, "this machine does not have " + patterns};
  }
  add_difference(context.files, want.config, diff);
  add_difference(context.files, want.unit, diff);
  if (!diff.empty()) return diff.result();
  return context.module("service")->check(context, unit_params(want));
}

Status apply_sys_values(StepContext& context, const WantedSysValues& want) {
  const bool changed = differs_from(context.files, want.unit);
  TRY_(put(context.files, want.config));
  TRY_(put(context.files, want.unit));
  if (changed) TRY_(reload_units(context));
  for (const auto& [pattern, value] : want.values)
    for (const auto& path : files_of(context.files, pattern)) {
      if (chosen(context.files.read_line(path)) == value) continue;
      if (auto written = context.files.write_raw(path, value + "\n"); !written.ok())
        return std::move(written).error().with(
            fmt::format("{} offers: {}", path, context.files.read_line(path)));
    }
  return context.module("service")->apply(context, unit_params(want));
}

}  // namespace

StepModule sys_values_module() {
  return step_module<WantedSysValues>({
      .name = "sys_values",
      .help = "Sets values in /sys, now and at every boot, and reads them back from the kernel, also from "
              "files that list all choices (`always [madvise] never`). Files that a machine does not have "
              "are ignored.",
      .check = check_sys_values,
      .apply = apply_sys_values,
      .complete = complete_sys_values,
  });
}

}  // namespace muster::steps
