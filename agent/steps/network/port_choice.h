// Which of a node's network ports is which rail, and which the storage port.
//
// Named in the spec: that one. Otherwise found among the physical ports of the right kind that are neither
// the provisioning port nor named for something else: rails by the GPUs they are nearest to
// (base/rail_choice.h), the storage port where it is the only one, or the only one with a link. If that is
// ambiguous, the step fails. A choice once made is kept: a dead adapter must not move the following rails to
// other networks.
// Thread: plain functions over Files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/step.h"
#include "base/rails.h"

namespace muster::steps {

struct NetPort {
  std::string name, mac, pci, path;  // path: pci_path() of base/rail_choice.h
  bool ethernet = true;              // else InfiniBand
  bool link = false;                 // false also while the interface is down
  int64_t speed_mbps = 0;            // 0: not known
  int number = 0;                    // of several ports of one PCI function
  std::string said() const;          // "eth5 (0000:41:00.0)"
};
// Physical ones: no loopback, bridges, VLANs, virtual functions, InfiniBand partitions, nothing on USB (a BMC
// presents such a port to its host), and none that is part of a bridge or a bond. Ordered by PCI address,
// port number, name.
std::vector<NetPort> physical_ports(const Files& files);

struct WantedPort {
  int rail = -1;  // -1: the storage port
  std::string address, network, gateway, port;
  bool ethernet = true;
  int64_t mtu = 0;  // 0: any
  std::string title() const { return PortRecord{rail, {}, {}, {}}.title(); }
  int prefix() const;
  // Part of file names: "rail3", "storage"
  std::string key() const { return rail < 0 ? "storage" : "rail" + std::to_string(rail); }
};
// Of the parameters `rails` and `storage`; invalid when an entry lacks something.
Result<std::vector<WantedPort>> wanted_ports(const Json& params);

struct GivenPort {
  WantedPort want;
  NetPort port;
};
struct PortsAsked {
  const Files& files;
  std::string node;  // own name, for messages
  std::string mac;   // of the provisioning port
  NetworksRecord before;
  int gpus_declared = 0;  // 0: not in the spec
};
// In the order of `wanted`. Code::not_found: a port is missing. Code::conflict: more ports than needed, and
// not the needed number with a link; `open` then has the candidates.
Result<std::vector<GivenPort>> give_ports(const PortsAsked& asked, const std::vector<WantedPort>& wanted,
                                          std::vector<NetPort>& open);

}  // namespace muster::steps
