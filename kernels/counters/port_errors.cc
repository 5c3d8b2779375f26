#include "kernels/counters/port_errors.h"

#include <fmt/format.h>

#include "host/net_ports.h"
#include "host/port_counters.h"
#include "kernels/rdma/rdma.h"

namespace muster::kernels {
namespace {

constexpr const char* kLinked = "linked";
constexpr const char* kNet = "/sys/class/net/";

struct CountedPort {
  std::string part, folder;
  bool linked = false;
  std::string interface = {};  // of an RDMA port on Ethernet
};

std::vector<CountedPort> network_ports(const Files& files) {
  std::vector<CountedPort> out;
  for (const NetPort& port : net_ports(files)) {
    const std::string folder = kNet + port.name;
    out.push_back(
        {"NIC " + (port.mac.empty() ? port.name : port.mac), folder, has_network_link(files, folder)});
  }
  return out;
}

std::vector<CountedPort> rdma_counted_ports(const Files& files) {
  std::vector<CountedPort> out;
  for (const auto& port : rail_ports(files))
    out.push_back({fmt::format("RDMA port {} {}", port.device, port.port), port.folder(),
                   port.rail >= 0 || has_rdma_link(files, port.folder()),
                   files.read_line(port.folder() + "/gid_attrs/ndevs/0")});
  return out;
}

bool counts(const CountedPort& port, const Counts& before) {
  return port.linked || count_of(before, kLinked, port.part) > 0;
}

void save(const Files& files, const CountedPort& port, std::span<const PortCounter> rows, Counts& out) {
  out[kLinked][port.part] = port.linked;
  for (const auto& [file, count] : read_port_counters(files, port.folder, rows))
    out[file][port.part] += count;
}

std::map<std::string, std::string> interfaces_of(const std::vector<CountedPort>& ports) {
  std::map<std::string, std::string> out;
  for (const auto& port : ports)
    if (!port.interface.empty()) out[port.part] = port.interface;
  return out;
}

bool is_in_sysfs(const PortMetric& metric) {
  const auto rows = rdma_port_counters();
  return std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return row.metric == metric.name; });
}

// What the counters of one kind of port did.
class Rises {
 public:
  Rises(const Counts& before, Measurement& out, Moved& moved) : before_(before), out_(out), moved_(moved) {}

  void add(const Files& files, const CountedPort& port, std::span<const PortCounter> rows) {
    const auto now = read_port_counters(files, port.folder, rows);
    std::map<std::string, uint64_t> by_metric;
    for (const PortCounter& row : rows) {
      const std::string file(row.file), metric(row.metric);
      const auto count = now.find(file);
      if (count == now.end()) continue;
      const uint64_t* saved = saved_count(before_, file, port.part);
      const Rise rise = rise_of(row, saved ? std::optional<uint64_t>(*saved) : std::nullopt, count->second);
      by_metric[metric] += rise.by;
      if (rise.by > 0) counted_[port.part][std::string(row.name())] = rise.by;
      if (!rise.at_least.empty()) open_.try_emplace(metric, fmt::format("{}: {}", port.part, rise.at_least));
    }
    for (const auto& [metric, by] : by_metric) {
      if (by > 0) moved_.parts[port.part][metric] = by;
      sums_[metric] += by;
      most_[metric] = std::max(most_[metric], by);
    }
  }

  void report_sum(const char* metric) {
    if (note(metric)) out_.metrics[metric] = {static_cast<double>(sums_[metric]), ""};
  }
  // Limits apply to a port: of the worst one, not the sum.
  void report_rate(const std::string& metric, double hours) {
    if (note(metric)) out_.metrics[metric] = {rounded(static_cast<double>(most_[metric]) / hours), "/h"};
  }
  const Json& counted() const { return counted_; }

 private:
  bool note(const std::string& metric) {
    if (!sums_.count(metric)) {
      moved_.absent.push_back(metric);
      return false;
    }
    if (const auto why = open_.find(metric); why != open_.end())
      out_.detail["at_least"][metric] = why->second;
    return true;
  }

  const Counts& before_;
  Measurement& out_;
  Moved& moved_;
  std::map<std::string, uint64_t> sums_ = {}, most_ = {};
  std::map<std::string, std::string> open_ = {};
  Json counted_ = Json::object();
};

}  // namespace

void read_port_errors(const Files& files, const QueryStatistics& query, Counts& out) {
  for (const auto& port : network_ports(files)) save(files, port, network_port_counters(), out);
  const auto ports = rdma_counted_ports(files);
  for (const auto& port : ports) save(files, port, rdma_port_counters(), out);
  if (query) read_priorities(interfaces_of(ports), query, out);
}

void add_port_errors(const Files& files, const QueryStatistics& query, const SinceSaved& since,
                     Measurement& out, Moved& moved) {
  Rises network(since.before, out, moved), rdma(since.before, out, moved);
  for (const auto& port : network_ports(files))
    if (counts(port, since.before)) network.add(files, port, network_port_counters());
  for (const char* metric : {"network_errors", "link_down"}) network.report_sum(metric);
  auto ports = rdma_counted_ports(files);
  std::erase_if(ports, [&](const CountedPort& port) { return !counts(port, since.before); });
  if (ports.empty()) return moved.absent.push_back("RDMA ports");
  for (const auto& port : ports) rdma.add(files, port, rdma_port_counters());
  out.detail["hours"] = rounded(since.hours);
  for (const PortMetric& metric : rdma_port_metrics())
    if (is_in_sysfs(metric)) rdma.report_rate(std::string(metric.name), since.hours);
  if (!rdma.counted().empty()) out.detail["counted"] = rdma.counted();
  add_priorities(query ? interfaces_of(ports) : std::map<std::string, std::string>(), query, since.before,
                 since.hours, out, moved);
}

}  // namespace muster::kernels
