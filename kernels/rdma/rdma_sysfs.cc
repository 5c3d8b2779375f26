// RDMA ports as sysfs shows them, pairs of rails, and perftest's options and tables (kernels/rdma/rdma.h):
// those of Debian's perftest 4.5, by --help (its manual page is from 2008).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/perftest_files.h"
#include "base/split.h"
#include "host/rails.h"
#include "kernels/rdma/rdma.h"

namespace muster::kernels {
namespace {

constexpr const char* kClass = "/sys/class/infiniband/";
constexpr const char* kPci = "/sys/bus/pci/devices/";
constexpr int kBandwidthBytes = 65536, kLatencyBytes = 8;
// A packet is sent again after 4 us times 2 to this power, seven times. 14, the default, is half a second in
// all, and an emulated machine on a busy host may stand still for longer.
constexpr const char* kSoftTimeout = "18";

// The port's network interface. The first GID is that of its link-local address, without a VLAN.
std::string interface_of(const Files& files, const RdmaPort& port) {
  const std::string first = files.read_line(port.folder() + "/gid_attrs/ndevs/0");
  if (!first.empty()) return first;
  for (const auto& name : files.list(port.device_folder() + "/net"))
    if (std::atoi(files.read_line("/sys/class/net/" + name + "/dev_port", "0").c_str()) + 1 == port.port)
      return name;
  return "";
}

// A connection uses one port of a bond, and the RDMA device rounds to the speeds that it knows.
double ethernet_gbps(const Files& files, const std::string& interface) {
  double least = 0;
  for (const auto& port : ports_below(files, interface)) {
    const double gbps = interface_gbps(files, port);
    if (gbps > 0 && (least <= 0 || gbps < least)) least = gbps;
  }
  return least;
}

RdmaPort read_port(const Files& files, const RdmaPart& part) {
  RdmaPort out;
  out.device = part.device;
  out.port = part.port;
  out.label = part.label();
  out.state = part.state;
  out.active = part.active();
  out.layer = part.layer;
  out.rate_text = files.read_line(part.folder + "/rate");
  out.rate_gbps = std::strtod(out.rate_text.c_str(), nullptr);
  if (out.ethernet()) {
    out.gids = roce_gids(files, part.folder);
    out.interface = interface_of(files, out);
    if (const double gbps = ethernet_gbps(files, out.interface); gbps > 0) out.rate_gbps = gbps;
  }
  out.cpus = files.read_line(out.device_folder() + "/local_cpulist");
  out.pci = part.pci;
  out.place = port_place(out.pci, out.port, part.only);
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
std::string RdmaPort::device_folder() const { return kClass + device + "/device"; }

std::vector<RdmaPort> rdma_ports(const Files& files) {
  std::vector<RdmaPort> out;
  for (const RdmaPart& part : rdma_parts(files)) out.push_back(read_port(files, part));
  return out;
}

namespace {

// Every recent network adapter is an RDMA device as well: beside InfiniBand, an Ethernet port is a rail only
// if it has an address of a network. Where all are Ethernet, a rail that lost its address is a finding: the
// partner's port has one (check_rail()).
// A port of an ordinary network is no rail beside others; a machine with a single network has its rail there.
std::vector<RdmaPort> without_ordinary(const Files& files, std::vector<RdmaPort> ports) {
  const bool infiniband = std::any_of(ports.begin(), ports.end(), [](const RdmaPort& port) {
    return port.active && port.layer == LinkLayer::infiniband;
  });
  if (infiniband) std::erase_if(ports, [](const RdmaPort& port) { return port.lacks_address(); });
  const auto ordinary = [&](const RdmaPort& port) {
    return port.ethernet() && is_ordinary(files, port.interface);
  };
  if (std::any_of(ports.begin(), ports.end(), [&](const RdmaPort& port) {
        return port.active && !port.lacks_address() && !ordinary(port);
      }))
    std::erase_if(ports, ordinary);
  return ports;
}

}  // namespace

std::vector<RdmaPort> rail_ports(const Files& files) {
  std::vector<RdmaPort> all = rdma_ports(files), out;
  const auto record = read_networks_record(files);
  if (!record.ok() || record->rails().empty()) return without_ordinary(files, std::move(all));
  for (const auto& rail : record->rails()) {
    const RdmaName name = rdma_of_interface(files, rail.interface);
    for (const auto& port : all) {
      if (!name.found() || port.device != name.device || port.port != name.port) continue;
      out.push_back(port);
      out.back().rail = rail.rail;
      out.back().address = rail.address;
      if (!rail.address.empty())
        std::erase_if(out.back().gids, [&](const Gid& gid) { return gid.address != rail.address; });
    }
  }
  return out;
}

Command perftest_command(const PerfRun& run) {
  Command command;
  auto& argv = command.argv;
  if (run.tied) argv = {"setpriv", "--pdeathsig", "KILL"};
  if (!run.on.cpus.empty()) argv.insert(argv.end(), {"taskset", "-c", run.on.cpus});
  const bool bandwidth = run.test == PerfTest::bandwidth;
  if (run.program.empty())
    argv.push_back(bandwidth ? kPerftestBandwidth : kPerftestLatency);
  else
    argv.insert(argv.end(), run.program.begin(), run.program.end());
  argv.insert(argv.end(),
              {"-F", "-d", run.on.device, "-i", std::to_string(run.on.port), "-p", std::to_string(run.port)});
  if (run.on.pci.empty()) argv.insert(argv.end(), {"-u", kSoftTimeout});  // soft-RoCE
  if (run.gid >= 0) argv.insert(argv.end(), {"-x", std::to_string(run.gid)});
  if (run.gid >= 0 && run.traffic_class >= 0) argv.push_back(fmt::format("--tclass={}", run.traffic_class));
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
    // Bytes in no time are "inf".
    const double figure = bandwidth ? out.gbps : out.typical_us;
    if (figure > 0 && std::isfinite(figure + out.p99_us)) return out;
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
    out.problem = "perftest is built without CUDA, like most packages of it: it has no option `--use_cuda`";
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

std::vector<std::string> nearest_to_gpus(const Files& files, const std::vector<RdmaPort>& ports) {
  const auto gpus = files.list("/proc/driver/nvidia/gpus");
  std::vector<std::string> out;
  size_t best = 1;
  for (const auto& port : ports) {
    size_t shared = 0;
    for (const auto& gpu : gpus)
      if (!port.pci.empty()) shared = std::max(shared, shared_path(files, gpu, port.pci));
    if (shared > best) out.clear();
    if (shared < best) continue;
    best = shared;
    out.push_back(port.label);
  }
  return out;
}

}  // namespace muster::kernels
