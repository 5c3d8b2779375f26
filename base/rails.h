// Which of a node's ports are what: the record that the step module `networks` leaves on a node, and which
// RDMA port belongs to an interface. Whoever goes by the declared rails (NCCL's settings, quality of service,
// acceptance) reads it there, and none of them chooses ports of its own.
//
// Errors: no record is no error, since nothing may be declared; one that cannot be read is. Thread: pure over
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
  const PortRecord* find(int rail) const;  // null: not there
};
Result<NetworksRecord> read_networks_record(const Files& files);
std::string networks_record_text(const NetworksRecord& record);

// The PCI function behind a network interface, "0000:1a:00.0"; "" without one.
std::string pci_of_interface(const Files& files, const std::string& interface);

// What sysfs shows of the way to an interface's device, from the root complex on; pci_path() of
// base/rail_choice.h takes it. The link `device` is relative to the device, the interface's own is not.
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
