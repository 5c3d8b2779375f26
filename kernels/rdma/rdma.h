// Shared by the RDMA kernels (kernels/rdma/rdma.cc) and kernels/counters/counters.cc (names of ports): this
// machine's RDMA ports, the pairing of ports of two machines, perftest's command line and output. Thread
// safety: stateless functions; each call reads the files again.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
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
  bool ethernet = false;  // RoCE
  double rate_gbps = 0;   // negotiated link rate
  int gid = -1;           // RoCE: index of the first RoCE v2 GID that is an IPv4 address; -1: none
  std::string cpus = {};  // CPUs local to the device; empty: not known
  std::string pci = {};   // PCI address of the device; empty: none (soft-RoCE)
  int rail = -1;          // number of the declared rail; -1: not a declared rail
  std::string folder() const;
};
// Returns the ports that can be rails (host/rdma_devices.h), in numerical order.
std::vector<RdmaPort> rdma_ports(const Files& files);
// Returns the ports of the declared rails (host/rails.h), in that order; all ports if none are declared.
std::vector<RdmaPort> rail_ports(const Files& files);

// Pairs the ports of two machines into rails by name, so that a missing port does not shift all later ports
// to the wrong rail. If no names match (different drivers) but both sides have the same number of ports, port
// k is paired with port k in name order. An empty label: that side has no port.
struct Rail {
  size_t number = 0;  // the rail's index, which is the same on both sides
  std::string here = {}, there = {};
};
std::vector<Rail> pair_rails(const std::vector<std::string>& here, const std::vector<std::string>& there);
// Pairs by rail number, independent of device names; for machines that both have declared rails.
std::vector<Rail> pair_declared(const std::map<int, std::string>& here,
                                const std::map<int, std::string>& there);

enum class PerfTest { bandwidth, latency };
struct PerfRun {
  PerfTest test = PerfTest::bandwidth;
  RdmaPort on = {};
  uint16_t port = 0;         // TCP port for perftest's connection setup
  std::string partner = {};  // numeric address of the server side; empty: this is the server side
  int seconds = 1;           // bandwidth
  int iterations = 1000;     // latency
  int gpu = -1;              // index of the GPU whose memory is used; -1: the host's memory
  bool dma_buf = false;      // GPU memory by dma-buf instead of nvidia_peermem
  bool tied = false;         // run under setpriv, so that it is killed when its parent exits
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

}  // namespace muster::kernels
