// Assigns ports to rails if the spec does not: rail i is the port nearest to GPU i on PCI Express, so that a
// GPU's traffic uses a port close to it and does not cross the processors.
//
// Nearest: the longest common path from the root complex. GPUs are numbered in the order of their PCI
// addresses, as by NVIDIA's tools. Ports that are equally near to the same number of GPUs are taken in the
// order of their addresses. If there are more ports than rails, the ones nearest to a GPU are used; otherwise
// those with a link; otherwise the fastest of these. Anything ambiguous is an error. Used by the node that
// configures its ports and by the plan that shows them beforehand. Pure functions, no I/O.
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

// Returns the path from the root complex to a PCI device, without the device, from its link in sysfs:
// "pci0000:15/0000:15:01.0/0000:16:00.0". Empty: not a PCI device, or one on USB.
std::string pci_path(const std::string& link);

}  // namespace muster
