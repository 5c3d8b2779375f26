// Shared by the RDMA kernels (kernels/rdma/rdma.cc) and kernels/counters/counters.cc (names of ports): this
// machine's RDMA ports, the pairing of ports of two machines, perftest's command line and output. Thread
// safety: stateless functions; each call reads the files again.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "host/gids.h"
#include "host/port_ability.h"
#include "host/rdma_devices.h"
#include "sys/os.h"

namespace muster::kernels {

struct RdmaPort {
  std::string label = {};  // "mlx5_0"; of a device with several ports "mlx4_0/2": the name used in messages
  std::string device = {};
  int port = 1;
  bool active = false;
  std::string state = {};  // "4: ACTIVE"
  LinkLayer layer = LinkLayer::unknown;
  double rate_gbps = 0;        // negotiated link rate: the slowest port's of a bond
  std::string rate_text = {};  // "200 Gb/sec (2X NDR)"
  std::vector<Gid> gids = {};  // RoCE: of a declared rail only its own address's
  std::string interface = {};  // RoCE: its network interface; empty: unknown
  std::string cpus = {};       // CPUs local to the device; empty: not known
  std::string pci = {};        // PCI address of the device; empty: none (soft-RoCE)
  std::string place = {};      // port_place(); empty: none
  int rail = -1;               // number of the declared rail; -1: not a declared rail
  std::string address = {};    // of the declared rail
  bool ethernet() const { return layer == LinkLayer::ethernet; }
  bool reliable() const { return layer != LinkLayer::none; }
  bool lacks_address() const { return ethernet() && gids.empty(); }
  std::string folder() const;
  std::string device_folder() const;  // its PCI attributes
};
// Returns the ports that can be rails (host/rdma_devices.h), in numerical order.
std::vector<RdmaPort> rdma_ports(const Files& files);
// Returns the ports of the declared rails (host/rails.h), in that order. If none are declared: all ports, but
// beside InfiniBand no Ethernet port without an address of a network, and where others have a link and an
// address, no ordinary one (host/rails.h).
std::vector<RdmaPort> rail_ports(const Files& files);

// Two ports that are measured with each other. An empty label: that side has no such port.
struct Rail {
  size_t number = 0;  // the rail's index, which is the same on both sides
  std::string here = {}, there = {};
  std::string place = {};  // where both have it; empty: paired by number or by name
  // "rail 3"; "port 0000:5e:00.0" if the place decides: a number would be another one with another partner
  std::string title() const { return place.empty() ? "rail " + std::to_string(number) : "port " + place; }
};
struct RailEnd {
  std::string label = {}, place = {};
};
// Pairs by place, so that an adapter that one machine lacks does not shift the others: mlx5_N is a number
// in the order of probing. Empty if places do not decide: a port has none, or the machines are not alike
// (one side's ports are neither all found at the other, nor most of them).
std::vector<Rail> pair_places(const std::vector<RailEnd>& here, const std::vector<RailEnd>& there);
// Pairs by name. If no names match (different drivers) but both sides have the same number of ports, port
// k is paired with port k in name order.
std::vector<Rail> pair_rails(const std::vector<std::string>& here, const std::vector<std::string>& there);
// Pairs by rail number, independent of device names; for machines that both have declared rails.
std::vector<Rail> pair_declared(const std::map<int, std::string>& here,
                                const std::map<int, std::string>& there);

enum class PerfTest { bandwidth, latency };
struct PerfRun {
  PerfTest test = PerfTest::bandwidth;
  std::vector<std::string> program = {};  // words that start it; empty: the host's own
  RdmaPort on = {};
  uint16_t port = 0;         // TCP port for perftest's connection setup
  std::string partner = {};  // numeric address of the server side; empty: this is the server side
  int seconds = 1;           // bandwidth
  int iterations = 1000;     // latency
  int gpu = -1;              // index of the GPU whose memory is used; -1: the host's memory
  bool dma_buf = false;      // GPU memory by dma-buf instead of nvidia_peermem
  bool tied = false;         // run under setpriv, so that it is killed when its parent exits
  int gid = -1;              // RoCE: index of the GID; -1: InfiniBand
  int traffic_class = -1;    // RoCE; -1: the device's
};
Command perftest_command(const PerfRun& run);

struct PerfResult {
  double gbps = 0;                    // bandwidth: average
  double typical_us = 0, p99_us = 0;  // latency: half of a round trip
  int mtu = 0;                        // negotiated payload bytes per packet
};
// Parses perftest's output. Code::failed if it has no table of that test, or a figure is 0 (perftest could
// not calibrate its clock).
Result<PerfResult> parse_perftest(const std::string& text, PerfTest test);

// GPUDirect support, from the loaded kernel modules and the options that `ib_write_bw --help` lists.
struct GpuDirect {
  std::string problem = {};  // why RDMA from GPU memory cannot be measured on this node; empty: it can
  bool dma_buf = false;
  std::vector<std::string> gpus = {};  // PCI addresses in CUDA's order (CUDA_DEVICE_ORDER=PCI_BUS_ID)
};
GpuDirect gpu_direct(const Files& files, const std::string& help);
// Returns the index of the port's closest GPU in the PCIe tree; rails alternate between equally close GPUs.
int nearest_gpu(const Files& files, const GpuDirect& direct, const RdmaPort& port, size_t rail);
// Labels of those ports that are nearer to a GPU in the PCIe tree than the others; none if there are no GPUs.
std::vector<std::string> nearest_to_gpus(const Files& files, const std::vector<RdmaPort>& ports);

}  // namespace muster::kernels
