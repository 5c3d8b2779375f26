// The RDMA ports of this machine that can be rails, with the reason for each that cannot: virtual functions,
// subfunctions, representors, functions that only manage NVSwitches or the planes of a port. The only place
// that decides this: measurements, counters, the step `rdma_ports`, properties and the inventory read this
// list.
//
// Reads /sys only. Thread safety: plain value types, stateless functions.
#pragma once

#include <string>
#include <vector>

#include "base/left_out.h"
#include "sys/os.h"

namespace muster {

// `none`: the kernel knows the port, and it has neither; AWS EFA, which also has no reliable connections.
// `unknown`: the kernel does not show it.
enum class LinkLayer { infiniband, ethernet, none, unknown };
const char* to_string(LinkLayer layer);  // as in sysfs: "InfiniBand", "Ethernet", "Unspecified", "unknown"

struct RdmaPart {
  std::string device = {};
  int port = 1;
  bool only = true;         // the only port of its device
  std::string folder = {};  // /sys/class/infiniband/mlx5_0/ports/1
  std::string pci = {};     // address of the device; empty: none (soft-RoCE)
  LinkLayer layer = LinkLayer::unknown;
  std::string state = {}, physical = {};  // "4: ACTIVE", "5: LinkUp"
  Why why = Why::real;
  bool active() const;
  // "mlx5_0"; of a device with several ports "mlx4_0/2"
  std::string label() const;
};

// Every port of every device, in numerical order: mlx5_2 before mlx5_10.
std::vector<RdmaPart> rdma_devices(const Files& files);
// Those that can be rails.
std::vector<RdmaPart> rdma_parts(const Files& files);

// The order of such labels.
bool rdma_label_before(const std::string& a, const std::string& b);

}  // namespace muster
