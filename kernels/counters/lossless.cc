#include "kernels/counters/lossless.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fmt/format.h>

namespace muster::kernels {
namespace {

constexpr int kPriorities = 8;
constexpr const char *kDiscards = "rdma_lossless_discards", *kPauses = "rdma_pauses";

bool is_of_port(const PortCounter& row) { return row.name().find("{}") == std::string_view::npos; }

std::string at_priority(const PortCounter& row, int priority) {
  std::string out(row.name());
  return is_of_port(row) ? out : out.replace(out.find("{}"), 2, std::to_string(priority));
}

// The statistics of one port that have a row.
PortStatistics priorities_of(const PortStatistics& all) {
  PortStatistics out;
  for (const PortCounter& row : priority_counters())
    for (int priority = 0; priority < kPriorities; ++priority)
      if (const auto found = all.find(at_priority(row, priority)); found != all.end()) out.insert(*found);
  return out;
}

Rise rise_in(const PortCounter& row, const PortStatistics::value_type& now, const std::string& part,
             const Counts& before) {
  const uint64_t* saved = saved_count(before, now.first, part);
  return rise_of(row, saved ? std::optional<uint64_t>(*saved) : std::nullopt, now.second);
}

struct PortLoss {
  uint64_t discards = 0, pauses = 0;
  bool paused = false, counts_discards = false;
  std::string at_least = {};
};

PortLoss loss_of(const PortStatistics& now, const std::string& part, const Counts& before) {
  PortLoss out;
  for (int priority = 0; priority < kPriorities; ++priority) {
    uint64_t paused = 0;
    for (const PortCounter& row : priority_counters())
      if (const auto count = now.find(at_priority(row, priority));
          count != now.end() && row.metric == kPauses && !is_of_port(row))
        paused += count->second;
    if (paused == 0) continue;  // nothing has asked for a pause: not known to be lossless
    out.paused = true;
    for (const PortCounter& row : priority_counters()) {
      const auto count = now.find(at_priority(row, priority));
      if (count == now.end() || is_of_port(row)) continue;
      const Rise rise = rise_in(row, *count, part, before);
      const bool discards = row.metric == kDiscards;
      (discards ? out.discards : out.pauses) += rise.by;
      out.counts_discards = out.counts_discards || discards;
      if (discards && out.at_least.empty() && !rise.at_least.empty())
        out.at_least = fmt::format("{}: priority {}: {}", part, priority, rise.at_least);
    }
  }
  // A port that is paused as a whole shows no class that loses nothing: only its pauses are counted.
  for (const PortCounter& row : priority_counters())
    if (const auto count = now.find(std::string(row.name())); count != now.end() && count->second > 0) {
      out.paused = true;
      out.pauses += rise_in(row, *count, part, before).by;
    }
  return out;
}

class Socket {
 public:
  Socket() : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  bool ethtool(const std::string& interface, void* request) const {
    ifreq call = {};
    interface.copy(call.ifr_name, IFNAMSIZ - 1);
    call.ifr_data = static_cast<char*>(request);
    return fd_ >= 0 && ::ioctl(fd_, SIOCETHTOOL, &call) == 0;
  }

 private:
  int fd_;
};

}  // namespace

Result<PortStatistics> read_port_statistics(const std::string& interface) {
  const Socket socket;
  const auto failed = [&] {
    return fail(Code::unavailable, fmt::format("{}: {}", interface, std::strerror(errno)));
  };
  ethtool_drvinfo driver = {};
  driver.cmd = ETHTOOL_GDRVINFO;
  if (!socket.ethtool(interface, &driver)) return failed();
  const size_t count = driver.n_stats;
  std::vector<char> names(sizeof(ethtool_gstrings) + count * ETH_GSTRING_LEN),
      values(sizeof(ethtool_stats) + count * sizeof(uint64_t));
  ethtool_gstrings strings = {};
  strings.cmd = ETHTOOL_GSTRINGS;
  strings.string_set = ETH_SS_STATS;
  strings.len = driver.n_stats;
  ethtool_stats statistics = {};
  statistics.cmd = ETHTOOL_GSTATS;
  statistics.n_stats = driver.n_stats;
  std::memcpy(names.data(), &strings, sizeof strings);
  std::memcpy(values.data(), &statistics, sizeof statistics);
  if (!socket.ethtool(interface, names.data()) || !socket.ethtool(interface, values.data())) return failed();
  PortStatistics out;
  for (size_t i = 0; i < count; ++i) {
    const char* name = names.data() + sizeof(ethtool_gstrings) + i * ETH_GSTRING_LEN;
    uint64_t value = 0;
    std::memcpy(&value, values.data() + sizeof(ethtool_stats) + i * sizeof value, sizeof value);
    out[std::string(name, ::strnlen(name, ETH_GSTRING_LEN))] = value;
  }
  return out;
}

void read_priorities(const std::map<std::string, std::string>& interfaces, const QueryStatistics& query,
                     Counts& out) {
  for (const auto& [part, interface] : interfaces)
    if (const auto all = query(interface); all.ok())
      for (const auto& [name, count] : priorities_of(*all)) out[name][part] = count;
}

void add_priorities(const std::map<std::string, std::string>& interfaces, const QueryStatistics& query,
                    const Counts& before, double hours, Measurement& out, Moved& moved) {
  PortLoss worst;
  for (const auto& [part, interface] : interfaces) {
    const auto all = query(interface);
    if (!all.ok()) continue;
    const PortLoss port = loss_of(*all, part, before);
    worst.paused = worst.paused || port.paused;
    worst.counts_discards = worst.counts_discards || port.counts_discards;
    worst.discards = std::max(worst.discards, port.discards);
    worst.pauses = std::max(worst.pauses, port.pauses);
    if (worst.at_least.empty()) worst.at_least = port.at_least;
    if (port.discards > 0) moved.parts[part][kDiscards] = port.discards;
  }
  const auto report = [&](const char* metric, bool counted, uint64_t count) {
    if (counted)
      out.metrics[metric] = {rounded(static_cast<double>(count) / hours), "/h"};
    else
      moved.absent.push_back(metric);
  };
  report(kDiscards, worst.counts_discards, worst.discards);
  report(kPauses, worst.paused, worst.pauses);
  if (worst.counts_discards && !worst.at_least.empty()) out.detail["at_least"][kDiscards] = worst.at_least;
}

}  // namespace muster::kernels
