#include "lab/lab_ports.h"

#include <fmt/format.h>

namespace muster::lab {

std::vector<LabPort> make_ports(int machine, bool storage_nic, int rails) {
  std::vector<LabPort> out;
  const auto add = [&](const std::string& network) {
    out.push_back({network, derived_mac(machine, port_number(network))});
  };
  if (storage_nic) add(kStorage);
  for (int i = 0; i < rails; ++i) add(fmt::format("rail{}", i));
  return out;
}

int port_number(const std::string& network) {
  if (network == kProvisioning) return 0;
  if (network == kStorage) return 1;
  for (int i = 0; i < kMaxRails; ++i)
    if (network == fmt::format("rail{}", i)) return 2 + i;
  return -1;
}

std::string derived_mac(int machine, int port) {
  return fmt::format("52:54:00:{:02x}:{:02x}:{:02x}", 0x20 + port, machine >> 8 & 0xff, machine & 0xff);
}

std::string bridge_name(const std::string& network) {
  return network == kProvisioning ? "br0" : "br-" + network;
}

}  // namespace muster::lab
