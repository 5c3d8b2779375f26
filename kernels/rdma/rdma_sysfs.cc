// RDMA ports as sysfs shows them, pairs of rails, and perftest's options and tables (kernels/rdma/rdma.h):
// those of Debian's perftest 4.5, by --help (its manual page is from 2008).
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/split.h"
#include "host/rails.h"
#include "kernels/rdma/rdma.h"

namespace muster::kernels {
namespace {

constexpr const char* kClass = "/sys/class/infiniband/";
constexpr const char* kPci = "/sys/bus/pci/devices/";
constexpr int kBandwidthBytes = 65536, kLatencyBytes = 8;

// The GID that can be routed in IPv4 networks, which NCCL and MPI need. Empty entries cannot be read.
int rocev2_ipv4_gid(const Files& files, const std::string& folder) {
  for (int i = 0; i < 256; ++i) {
    const std::string index = std::to_string(i);
    if (!files.exists(folder + "/gids/" + index)) break;
    if (files.read_line(folder + "/gid_attrs/types/" + index) != "RoCE v2") continue;
    if (files.read_line(folder + "/gids/" + index).starts_with("0000:0000:0000:0000:0000:ffff:")) return i;
  }
  return -1;
}

RdmaPort read_port(const Files& files, const RdmaPart& part) {
  RdmaPort out;
  out.device = part.device;
  out.port = part.port;
  out.label = part.label();
  out.state = part.state;
  out.active = part.active();
  out.layer = part.layer;
  out.ethernet = part.layer == LinkLayer::ethernet;
  out.rate_gbps = std::strtod(files.read_line(part.folder + "/rate", "0").c_str(), nullptr);
  if (out.ethernet) out.gid = rocev2_ipv4_gid(files, part.folder);
  out.cpus = files.read_line(kClass + part.device + "/device/local_cpulist");
  out.pci = part.pci;
  return out;
}

// Returns how much of their sysfs paths two PCI devices share, as a number of folders from the root.
size_t shared_path(const Files& files, const std::string& a, const std::string& b) {
  const auto one = files.read_link(kPci + a), other = files.read_link(kPci + b);
  if (!one.ok() || !other.ok()) return 0;
  const auto end =
      std::mismatch(one->begin(), one->begin() + static_cast<long>(std::min(one->size(), other->size())),
                    other->begin())
          .first;
  return static_cast<size_t>(std::count(one->begin(), end, '/'));
}

std::vector<double> numbers_of(const std::string& line) {
  std::vector<double> out;
  for (const auto& word : split_words(line)) {
    char* end = nullptr;
    out.push_back(std::strtod(word.c_str(), &end));
    if (*end != '\0') return {};
  }
  return out;
}

}  // namespace

std::string RdmaPort::folder() const { return fmt::format("{}{}/ports/{}", kClass, device, port); }

std::vector<RdmaPort> rdma_ports(const Files& files) {
  std::vector<RdmaPort> out;
  for (const RdmaPart& part : rdma_parts(files)) out.push_back(read_port(files, part));
  return out;
}

std::vector<RdmaPort> rail_ports(const Files& files) {
  std::vector<RdmaPort> all = rdma_ports(files), out;
  const auto record = read_networks_record(files);
  if (!record.ok() || record->rails().empty()) return all;
  for (const auto& rail : record->rails()) {
    const RdmaName name = rdma_of_interface(files, rail.interface);
    for (const auto& port : all) {
      if (!name.found() || port.device != name.device || port.port != name.port) continue;
      out.push_back(port);
      out.back().rail = rail.rail;
    }
  }
  return out;
}

std::vector<Rail> pair_rails(const std::vector<std::string>& here, const std::vector<std::string>& there) {
  const auto has = [](const std::vector<std::string>& side, const std::string& label) {
    return std::find(side.begin(), side.end(), label) != side.end();
  };
  const bool share =
      std::any_of(here.begin(), here.end(), [&](const auto& label) { return has(there, label); });
  std::vector<Rail> out;
  if (!share && here.size() == there.size()) {
    for (size_t i = 0; i < here.size(); ++i) out.push_back({i, here[i], there[i]});
    return out;
  }
  std::vector<std::string> either = here;
  for (const auto& label : there)
    if (!has(here, label)) either.push_back(label);
  std::sort(either.begin(), either.end(), rdma_label_before);
  for (size_t i = 0; i < either.size(); ++i)
    out.push_back({i, has(here, either[i]) ? either[i] : "", has(there, either[i]) ? either[i] : ""});
  return out;
}

std::vector<Rail> pair_declared(const std::map<int, std::string>& here,
                                const std::map<int, std::string>& there) {
  std::map<size_t, Rail> all;
  for (const auto& [number, label] : here) all[static_cast<size_t>(number)].here = label;
  for (const auto& [number, label] : there) all[static_cast<size_t>(number)].there = label;
  std::vector<Rail> out;
  for (auto& [number, rail] : all) {
    rail.number = number;
    out.push_back(std::move(rail));
  }
  return out;
}

Command perftest_command(const PerfRun& run) {
  Command command;
  auto& argv = command.argv;
  if (run.tied) argv = {"setpriv", "--pdeathsig", "KILL"};
  if (!run.on.cpus.empty()) argv.insert(argv.end(), {"taskset", "-c", run.on.cpus});
  const bool bandwidth = run.test == PerfTest::bandwidth;
  for (const auto& word : {std::string(bandwidth ? "ib_write_bw" : "ib_write_lat"), std::string("-F"),
                           std::string("-d"), run.on.device, std::string("-i"), std::to_string(run.on.port),
                           std::string("-p"), std::to_string(run.port)})
    argv.push_back(word);
  if (run.on.gid >= 0) argv.insert(argv.end(), {"-x", std::to_string(run.on.gid)});
  argv.insert(argv.end(), {"-s", std::to_string(bandwidth ? kBandwidthBytes : kLatencyBytes)});
  if (bandwidth)
    argv.insert(argv.end(), {"-D", std::to_string(run.seconds), "--report_gbits"});
  else
    argv.insert(argv.end(), {"-n", std::to_string(run.iterations)});
  if (run.gpu >= 0) {
    argv.push_back(fmt::format("--use_cuda={}", run.gpu));
    if (run.dma_buf) argv.push_back("--use_cuda_dmabuf");
    command.env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  }
  if (!run.partner.empty()) argv.push_back(run.partner);
  // Allocating and sharing memory takes time, most of all on an emulated machine.
  command.deadline = (bandwidth ? run.seconds + 40 : 60 + run.iterations / 50) * kSecond;
  return command;
}

// Columns of bandwidth: bytes, iterations, peak, average, messages; of latency: bytes, iterations, minimum,
// maximum, typical, average, deviation, 99 %, 99.9 %. The row is the first one of only numbers.
Result<PerfResult> parse_perftest(const std::string& text, PerfTest test) {
  const bool bandwidth = test == PerfTest::bandwidth;
  PerfResult out;
  bool heading = false;
  for (const std::string& line : split_lines(text)) {
    if (const size_t at = line.find("Mtu "); at != std::string::npos)
      if (const size_t colon = line.find(':', at); colon != std::string::npos)
        out.mtu = std::atoi(line.c_str() + colon + 1);
    if (line.find("#bytes") != std::string::npos)
      heading = line.find(bandwidth ? "BW average[Gb/sec]" : "t_typical[usec]") != std::string::npos;
    if (!heading) continue;
    const auto row = numbers_of(line);
    if (row.size() < (bandwidth ? 5 : 9)) continue;
    if (bandwidth)
      out.gbps = row[3];
    else
      out.typical_us = row[4], out.p99_us = row[7];
    if ((bandwidth ? out.gbps : out.typical_us) > 0) return out;
    if (row[1] <= 0) break;
    // perftest measures time with the time-stamp counter, and prints zeros if it cannot determine the
    // counter's rate: seen where the kernel had marked the counter unstable.
    return fail(Code::failed,
                fmt::format("perftest printed no {} for {:.0f} messages, so it cannot measure time with this "
                            "machine's time-stamp counter (search the kernel log for `tsc`)",
                            bandwidth ? "bandwidth" : "latency", row[1]));
  }
  return fail(Code::failed, fmt::format("perftest printed no {}", bandwidth ? "bandwidth" : "latency"));
}

GpuDirect gpu_direct(const Files& files, const std::string& help) {
  GpuDirect out;
  out.gpus = files.list("/proc/driver/nvidia/gpus");
  const bool open_driver =
      files.read("/proc/driver/nvidia/version").value_or("").find("Open Kernel Module") != std::string::npos;
  const bool peermem = files.exists("/sys/module/nvidia_peermem");
  out.dma_buf = !peermem && open_driver && help.find("--use_cuda_dmabuf") != std::string::npos;
  if (out.gpus.empty())
    out.problem = "there is no GPU with NVIDIA's driver";
  else if (help.find("--use_cuda") == std::string::npos)
    out.problem = "perftest is built without CUDA, like Debian's package: it has no option `--use_cuda`";
  else if (!peermem && !out.dma_buf)
    out.problem = "nvidia_peermem is not loaded, and the driver or perftest does not support dma-buf";
  return out;
}

int nearest_gpu(const Files& files, const GpuDirect& direct, const RdmaPort& port, size_t rail) {
  std::vector<int> nearest;
  size_t best = 0;
  for (size_t i = 0; i < direct.gpus.size(); ++i) {
    const size_t shared = port.pci.empty() ? 0 : shared_path(files, direct.gpus[i], port.pci);
    if (shared > best) nearest.clear();
    if (shared < best) continue;
    best = shared;
    nearest.push_back(static_cast<int>(i));
  }
  return nearest.empty() ? -1 : nearest[rail % nearest.size()];
}

}  // namespace muster::kernels
