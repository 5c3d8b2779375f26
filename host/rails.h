// The roles of a node's ports: the record that the step module `networks` writes on a node, and the RDMA port
// of an interface. All users of the declared rails (NCCL's settings, quality of service, acceptance) read
// that record; none chooses ports itself. A missing record is not an error, since the spec may declare no
// rails; an unreadable one is. Thread safety: stateless functions.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "sys/os.h"

namespace muster {

inline constexpr const char* kNetworksRecord = "/etc/muster/networks.json";

struct PortRecord {
  int rail = -1;  // -1: the storage port
  std::string interface = {}, pci = {}, address = {};
  // "rail 3", "storage port"
  std::string title() const;
};
struct NetworksRecord {
  std::string provisioning = {};       // interface
  std::vector<PortRecord> ports = {};  // rails in their order, then the storage port if there is one
  // The traffic class of RDMA on the rails (the IPv4 header's second byte), which is lossless there; -1:
  // none is declared. All programs that send RDMA are set to it: NCCL, UCX, perftest.
  int traffic_class = -1;
  std::vector<PortRecord> rails() const;
  const PortRecord* find(int rail) const;  // null: missing
};
Result<NetworksRecord> read_networks_record(const Files& files);
std::string networks_record_text(const NetworksRecord& record);

// "0000:1a:00.0"; "" if it has none.
std::string pci_of_interface(const Files& files, const std::string& interface);

// Returns the path in sysfs from the root complex to an interface's device, for pci_path()
// (base/rail_choice.h). The link `device` is relative to the device; the interface's own link is not.
std::string way_to_interface(const Files& files, const std::string& interface);

struct RdmaName {
  std::string device;
  int port = 1;
  bool only = true;  // it is the only port of the device
  // "mlx5_0" if it is the only port of that device, else "mlx4_0/2"
  std::string label() const { return only ? device : device + "/" + std::to_string(port); }
  bool found() const { return !device.empty(); }
};
// Empty if it has none.
RdmaName rdma_of_interface(const Files& files, const std::string& interface);

// True if this interface, or a port below it, carries the default route (of IPv4 or IPv6) or the provisioning
// network of the record: an ordinary network's. The only place that decides which ports these are.
bool is_ordinary(const Files& files, const std::string& interface);

// The number of active RDMA ports that connect nodes: InfiniBand's, and Ethernet's that have an address of a
// network and are not ordinary. Ordinary network adapters are RDMA devices as well.
int fabric_ports(const Files& files);

}  // namespace muster
