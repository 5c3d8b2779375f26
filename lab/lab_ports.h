// Ports: the network ports of a machine, other than its provisioning port, and the networks to which they are
// connected.
//
// Each such network has its own switch with jumbo frames, which connects machines only: `storage`, `rail0`,
// `rail1`, ... A port's MAC is derived from the machine's number and the network, so it is the same in every
// lab with that spec, and a missing port does not change the others. Thread safety: stateless functions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace muster::lab {

inline constexpr int kMaxRails = 8;
inline constexpr size_t kMaxMachines = 64;
inline constexpr int kFastMtu = 9000;
inline constexpr const char* kProvisioning = "provisioning";
inline constexpr const char* kStorage = "storage";

struct LabPort {
  std::string network;  // "storage", "rail0"
  std::string mac;
  bool cabled = true;     // false: the port exists without a link
  bool counting = false;  // an adapter that counts errors, as `lab break port-errors` needs
};

// Returns the ports, storage first, then the rails: the order in which the guest finds them on its PCI bus.
std::vector<LabPort> make_ports(int machine, bool storage_nic, int rails);

// Returns 0 for provisioning, 1 storage, 2 rail0, ... 9 rail7; -1: not a network of a lab.
int port_number(const std::string& network);
// "52:54:00:2P:NN:NN": P the port's number, NN:NN the machine's.
std::string derived_mac(int machine, int port);

// Returns a network's bridge (its switch) in the lab's namespace: "br0", "br-storage", "br-rail0".
std::string bridge_name(const std::string& network);

}  // namespace muster::lab
