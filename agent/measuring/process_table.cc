#include "agent/measuring/process_table.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "base/split.h"
#include "base/time.h"
#include "sys/account_files.h"

namespace muster {
namespace {

constexpr uint64_t kKernelThread = 0x00200000;  // PF_KTHREAD, in the flags
constexpr uint32_t kNoLogin = UINT32_MAX;       // loginuid of a process that no login started

template <typename Number>
std::optional<Number> number_of(const std::string& text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

// Fields are counted as in proc(5), from 3 on: the second may contain blanks and brackets.
void read_stat(const std::string& text, RunningProcess& out) {
  const size_t open = text.find('('), close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return;
  out.comm = text.substr(open + 1, close - open - 1);
  const auto fields = split_words(text.substr(close + 1));
  const auto field = [&](size_t number) {
    return number - 3 < fields.size() ? number_of<uint64_t>(fields[number - 3]).value_or(0) : 0;
  };
  out.ended = !fields.empty() && fields[0] == "Z";
  out.parent = static_cast<int64_t>(field(4));
  out.kernel = (field(9) & kKernelThread) != 0;
  out.used = field(14) + field(15);
  out.reaped = field(16) + field(17);
  out.started = field(22);
}

// The rest of the line in a file of lines "KEY:\tVALUE" that begins so; "" if there is none.
std::string value_after(const std::string& text, std::string_view key) {
  for (const std::string& line : split_lines(text))
    if (line.starts_with(key)) return trim(line.substr(key.size()));
  return "";
}

// The machine's processors have worked for so long: without idle, iowait, and what a hypervisor took.
uint64_t machine_used(const std::string& stat) {
  const auto fields = split_words(value_after(stat, "cpu "));
  uint64_t out = 0;
  for (const size_t at : {0, 1, 2, 5, 6})
    if (at < fields.size()) out += number_of<uint64_t>(fields[at]).value_or(0);
  return out;
}

}  // namespace

std::optional<int64_t> pid_of(const std::string& text) {
  const auto value = number_of<int64_t>(text);
  return value && *value > 0 ? value : std::nullopt;
}

const RunningProcess* ProcessTable::find(int64_t pid) const {
  const auto found = all.find(pid);
  return found == all.end() ? nullptr : &found->second;
}

ProcessTable process_tree(const Files& files) {
  ProcessTable out;
  out.uptime = std::strtod(files.read_line("/proc/uptime").c_str(), nullptr);
  out.used = machine_used(files.read("/proc/stat").value_or(""));
  for (const std::string& name : files.list("/proc")) {
    const auto pid = pid_of(name);
    if (!pid) continue;
    read_stat(files.read_line("/proc/" + name + "/stat"), out.all[*pid]);
  }
  return out;
}

ProcessTable process_table(const Files& files) {
  ProcessTable out = process_tree(files);
  for (auto& [pid, process] : out.all)
    process.argv = split(files.read("/proc/" + std::to_string(pid) + "/cmdline").value_or(""), '\0');
  return out;
}

std::vector<int64_t> ancestors(const ProcessTable& table, int64_t pid) {
  std::vector<int64_t> out;
  std::set<int64_t> seen = {pid};
  for (const RunningProcess* one = table.find(pid); one; one = table.find(one->parent)) {
    if (one->parent <= 0 || !seen.insert(one->parent).second) break;
    out.push_back(one->parent);
  }
  return out;
}

std::set<int64_t> with_descendants(const ProcessTable& table, std::set<int64_t> roots) {
  for (bool more = true; more;) {
    more = false;
    for (const auto& [pid, one] : table.all)
      if (!roots.count(pid) && roots.count(one.parent)) more = roots.insert(pid).second;
  }
  return roots;
}

std::string process_status(const Files& files, const std::string& process, std::string_view key) {
  return value_after(files.read("/proc/" + process + "/status").value_or(""), std::string(key) + ":");
}

std::optional<uint32_t> user_of(const Files& files, int64_t pid) {
  const auto ids = split_words(process_status(files, std::to_string(pid), "Uid"));
  return ids.empty() ? std::nullopt : number_of<uint32_t>(ids[0]);
}

std::string user_name(const Files& files, uint32_t uid) {
  const std::string name = user_of_id(files, uid);
  return name.empty() ? fmt::format("uid {}", uid) : name;
}

std::string login_name(const Files& files, int64_t pid) {
  const auto uid = number_of<uint32_t>(files.read_line(fmt::format("/proc/{}/loginuid", pid)));
  return uid && *uid != kNoLogin ? user_name(files, *uid) : "";
}

std::string started_at(const Files& files, const RunningProcess& process) {
  const auto boot = number_of<int64_t>(value_after(files.read("/proc/stat").value_or(""), "btime "));
  if (!boot || process.started == 0) return "";
  return to_iso8601((*boot + static_cast<int64_t>(static_cast<double>(process.started) / kTicks)) * kSecond);
}

}  // namespace muster
