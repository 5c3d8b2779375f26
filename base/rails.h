// The roles of a node's ports: the record that the step module `networks` leaves on a node, and the RDMA port
// of an interface. All users of the declared rails (NCCL's settings, quality of service, acceptance) read
// that record, and none chooses ports itself.
//
// A missing record is not an error, since nothing may be declared; an unreadable one is. Thread: pure over
// Files.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/os.h"

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
  std::vector<PortRecord> rails() const;
  const PortRecord* find(int rail) const;  // null: missing
};
Result<NetworksRecord> read_networks_record(const Files& files);
std::string networks_record_text(const NetworksRecord& record);

// The PCI function behind a network interface, "0000:1a:00.0"; "" without one.
std::string pci_of_interface(const Files& files, const std::string& interface);

// The path in sysfs to an interface's device, from the root complex; input of pci_path() of
// base/rail_choice.h. The link `device` is relative to the device, the interface's own is not.
std::string way_to_interface(const Files& files, const std::string& interface);

struct RdmaName {
  std::string device;
  int port = 1;
  bool only = true;  // the device has no other
  // "mlx5_0"; of a device with several ports "mlx4_0/2"
  std::string label() const { return only ? device : device + "/" + std::to_string(port); }
  bool found() const { return !device.empty(); }
};
// Empty when the interface has none.
RdmaName rdma_of_interface(const Files& files, const std::string& interface);

}  // namespace muster
