// Ports: the network ports of a machine other than the one it is provisioned over, and the networks they are
// on.
//
// Each such network is a switch of its own, with jumbo frames, with only the machines on it: `storage` and
// `rail0`, `rail1`, ... A port's MAC follows from the machine's number and the network, so it is the same in
// every lab of the spec; a missing port does not move the others. Thread: values; pure functions.
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

// storage first, then the rails: the order in which the guest finds them on its PCI bus.
std::vector<LabPort> make_ports(int machine, bool storage_nic, int rails);

// 0 provisioning, 1 storage, 2 rail0, ... 9 rail7; -1: no network of a lab.
int port_number(const std::string& network);
// "52:54:00:2P:NN:NN": P the port's number, NN:NN the machine's.
std::string derived_mac(int machine, int port);

// The switch of a network in the lab's namespace: "br0", "br-storage", "br-rail0".
std::string bridge_name(const std::string& network);

}  // namespace muster::lab
