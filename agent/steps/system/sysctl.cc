// sysctl: sets kernel parameters, now and at every boot, in /proc/sys and in muster's own file in
// /etc/sysctl.d. Starts no process.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <utility>

#include "agent/core/parameters.h"
#include "agent/steps/files/own_file.h"
#include "base/lower.h"

namespace muster::steps {
namespace {

// Decimal, 0x hexadecimal or 0 octal, as the kernel reads them.
std::optional<long long> number(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &end, 0);
  if (text.empty() || errno != 0 || *end != '\0') return std::nullopt;
  return value;
}

// Compares numbers one by one. If fewer are written than a vector has, the kernel does not change the rest.
bool same_numbers(const std::vector<std::string>& have, const std::vector<std::string>& want) {
  if (want.empty() || want.size() > have.size()) return false;
  for (size_t i = 0; i < have.size(); ++i) {
    const auto now = number(have[i]);
    if (!now) return false;
    if (i < want.size() && number(want[i]) != now) return false;
  }
  return true;
}

// Parses "1,5-7" into sorted, merged ranges; nullopt for any other text.
std::optional<std::vector<std::pair<long long, long long>>> ranges(const std::string& text) {
  std::vector<std::pair<long long, long long>> all, out;
  for (const auto& part : split(text, ',')) {
    const size_t dash = part.find('-', 1);
    const auto from = number(part.substr(0, dash));
    const auto to = dash == std::string::npos ? from : number(part.substr(dash + 1));
    if (!from || !to || *from > *to) return std::nullopt;
    all.emplace_back(*from, *to);
  }
  std::sort(all.begin(), all.end());
  for (const auto& range : all) {
    if (!out.empty() && range.first <= out.back().second + 1)
      out.back().second = std::max(out.back().second, range.second);
    else
      out.push_back(range);
  }
  return out;
}

// True for a CPU mask, which the kernel prints in groups: "ff" as "00000000,000000ff".
bool is_mask(const std::string& key) {
  const std::string name = key.substr(key.find_last_of("./") + 1);
  return name == "flow_limit_cpu_bitmap" || name == "rps_default_mask";
}
std::string mask(const std::string& text) {
  std::string out;
  for (const auto& group : split(text, ','))
    out += std::string(group.size() < 8 ? 8 - group.size() : 0, '0') + group;
  out = lower(out);
  return out.substr(std::min(out.find_first_not_of('0'), out.size()));
}

// Path of a sysctl(8) key: "net.ipv4.conf.eth0/100.rp_filter" or "net/ipv4/conf/eth0.100/rp_filter".
std::string sysctl_path(std::string key) {
  const size_t first = key.find_first_of("./");
  if (first != std::string::npos && key[first] == '.')
    for (char& c : key) c = c == '.' ? '/' : c == '/' ? '.' : c;
  return "/proc/sys/" + key;
}

// True if `have`, as the kernel prints it, is the value that results from writing `want`: it prints the ports
// "3,1-2" as "1-3", 0x1000 as 4096, and a whole vector although only its first elements were written.
bool sysctl_has(const std::string& key, const std::string& have, const std::string& want) {
  const auto now = split(have, " \t\n"), meant = split(want, " \t\n");
  if (now == meant) return true;
  if (is_mask(key)) return mask(have) == mask(want);
  if (same_numbers(now, meant)) return true;
  // A list of ranges is one word; empty text is an empty list.
  if (now.size() > 1 || meant.size() > 1 || (now.empty() && meant.empty())) return false;
  const auto listed = ranges(now.empty() ? "" : now[0]), declared = ranges(meant.empty() ? "" : meant[0]);
  return listed && declared && *listed == *declared;
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
