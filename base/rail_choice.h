// Which ports are which rails, if the spec leaves it open: rail i is the port nearest to GPU i on PCI
// Express, so that a GPU's traffic leaves beside it and does not cross the processors.
//
// Near: as much of the way from the root complex in common as possible. GPUs count in the order of their PCI
// addresses, as NVIDIA's tools number them. Ports that are equally near to equally many GPUs are taken in
// their own order. If there are more ports than rails, those count that are nearest to a GPU; else those with
// a link; else the fastest of these. Anything ambiguous is an error. The same function for the node that
// configures its ports and the plan that shows them beforehand. Thread: pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster {

struct RailPort {
  std::string said;  // for messages: "eth5 (0000:41:00.0)"
  std::string path;  // pci_path(); empty: not known
  bool link = false;
  int64_t speed_mbps = 0;  // 0: not known
};
struct RailQuestion {
  std::vector<RailPort> ports = {};  // in the order of their PCI addresses
  std::vector<std::string> gpus =
      {};                 // their paths, in the order of their addresses; empty: by address alone
  size_t count = 0;       // of rails
  int gpus_declared = 0;  // 0: not in the spec
};
struct RailAnswer {
  std::vector<size_t> ports = {};  // index in `ports`, for each rail
  bool by_gpu = false;
};
// Code::not_found: fewer ports than rails. Code::conflict: ambiguous; the message lists the ports.
Result<RailAnswer> choose_rails(const RailQuestion& question);

// "eth1 (0000:1b:00.0) with a link, eth2 ... without a link"; "none"
std::string list_of_ports(const std::vector<RailPort>& ports);

// The path from the root complex to a PCI device, from its link in sysfs, without the device:
// "pci0000:15/0000:15:01.0/0000:16:00.0". Empty: no PCI device, or one behind USB.
std::string pci_path(const std::string& link);

}  // namespace muster
