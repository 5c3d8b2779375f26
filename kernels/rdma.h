// What the RDMA kernels share: the ports of this machine, which ports of two machines belong together, and
// how perftest is called and what it prints. kernels/rdma.cc measures with it, kernels/counters.cc names
// ports by it.
//
// Thread: plain functions; files are read when they are called.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/os.h"
#include "base/result.h"

namespace muster::kernels {

struct RdmaPort {
  std::string label = {};  // "mlx5_0"; of a device with several ports "mlx4_0/2": the name used in messages
  std::string device = {};
  int port = 1;
  bool active = false;
  std::string state = {};  // "4: ACTIVE"
  bool ethernet = false;   // RoCE
  double rate_gbps = 0;    // of the link as it was negotiated
  int gid = -1;            // RoCE: index of the first RoCE v2 GID that is an IPv4 address; -1: there is none
  std::string cpus = {};   // processors near the device; empty: not known
  std::string pci = {};    // address of the device; empty: none (soft-RoCE)
  int rail = -1;           // number of the declared rail it is; -1: of none
  std::string folder() const;
};
// Every port of every device, in the order of their numbers: mlx5_2 before mlx5_10.
std::vector<RdmaPort> rdma_ports(const Files& files);
// Those of the declared rails (base/rails.h), in their order; without declared rails all of them.
std::vector<RdmaPort> rail_ports(const Files& files);

// Rail by rail: ports of the same name belong together, so that a missing port does not shift all after it to
// the wrong rail. Where no names match (drivers name differently) and both sides have the same number: port k
// with port k, in name order. An empty label: no port on that side.
struct Rail {
  size_t number = 0;  // among the ports that either side has: the same from both ends
  std::string here = {}, there = {};
};
std::vector<Rail> pair_rails(const std::vector<std::string>& here, const std::vector<std::string>& there);
// Where both have declared rails: by their numbers, whatever the devices are called.
std::vector<Rail> pair_declared(const std::map<int, std::string>& here,
                                const std::map<int, std::string>& there);

enum class PerfTest { bandwidth, latency };
struct PerfRun {
  PerfTest test = PerfTest::bandwidth;
  RdmaPort on = {};
  uint16_t port = 0;         // TCP port that both ends use to agree
  std::string partner = {};  // numeric address of the serving side; empty: this is it
  int seconds = 1;           // bandwidth
  int iterations = 1000;     // latency
  int gpu = -1;              // index of the GPU whose memory is used; -1: the host's memory
  bool dma_buf = false;      // GPU memory by dma-buf instead of nvidia_peermem
  bool tied = false;         // killed with the program that started it, by setpriv
};
Command perftest_command(const PerfRun& run);

struct PerfResult {
  double gbps = 0;                    // bandwidth: average
  double typical_us = 0, p99_us = 0;  // latency: half of a round trip
  int mtu = 0;                        // payload bytes of a packet, as both ends agreed
};
// Code::failed when there is no table of that test in it, or a figure of 0: perftest could not calibrate its
// clock.
Result<PerfResult> parse_perftest(const std::string& text, PerfTest test);

// GPUDirect, from what is loaded and what `ib_write_bw --help` lists.
struct GpuDirect {
  std::string problem = {};  // why RDMA from GPU memory cannot be measured here; empty: it can
  bool dma_buf = false;
  std::vector<std::string> gpus = {};  // PCI addresses in CUDA's order (CUDA_DEVICE_ORDER=PCI_BUS_ID)
};
GpuDirect gpu_direct(const Files& files, const std::string& help);
// Index of the GPU that shares most of the PCIe tree with the port; among equal ones the rails take turns.
int nearest_gpu(const Files& files, const GpuDirect& direct, const RdmaPort& port, size_t rail);

}  // namespace muster::kernels
