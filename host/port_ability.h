// What a network port could do, beside what it does: the rate that it negotiated may be the fault, so it
// cannot be the expectation. Also the place that identifies the port at every boot, its adapter's model,
// the ports that carry an interface, and what PCI Express leaves it.
//
// Sources, in this order: an Ethernet port's supported link modes as its driver reports them
// (ETHTOOL_GLINKSETTINGS; only on the running machine), and the product name in the adapter's vital
// product data, which only root may read ("ConnectX-7 HHHL Adapter Card; 200GbE / NDR200 IB; Dual-port").
// A PCI device ID alone does not tell: boards of 200 and of 400 Gb/s have the same. Thread safety:
// stateless functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sys/os.h"

namespace muster {

struct PortAbility {
  double gbps = 0;          // the most that the port can do; 0: unknown
  std::string source = {};  // "its supported link modes", "its product name: ..."
  // Twisted pair: the most that the other end of the link offers; 0: unknown. A 10 Gb/s port at a switch of
  // 1 Gb/s is healthy; one whose switch offers 10 and that came up at 1 has a bad cable.
  double partner_gbps = 0;
};
// `interface` may be empty (InfiniBand). `device`: the port's folder of PCI attributes in sysfs, such as
// "/sys/class/net/eth0/device".
PortAbility port_ability(const Files& files, const std::string& interface, const std::string& device);

// The most in a set of link modes, bit 0 first as in the kernel's enum ethtool_link_mode_bit_indices, in
// Gb/s.
double gbps_of_link_modes(const std::vector<uint32_t>& words);
// The most that a product name states, in Gb/s; 0: none.
double gbps_of_product(const std::string& name);

// "0000:5e:00.0", "0000:5e:00.0/2" for the second port of one function; empty: not on PCI.
std::string port_place(const std::string& pci, int number, bool only);
// Vendor, device and board, as in "15b3:1021 15b3:0041"; empty: unknown.
std::string adapter_model(const Files& files, const std::string& device);
// The negotiated rate of an interface in Gb/s; 0: no link, or the driver does not report it.
double interface_gbps(const Files& files, const std::string& interface);

// The ports that carry an interface: itself, or those below a VLAN, a bond or a bridge. Sorted.
std::vector<std::string> ports_below(const Files& files, const std::string& interface);

// What PCI Express leaves a port if all of these are busy at once: by what the links on its way to the
// processor can do (both ends), not by how they were trained.
struct PcieShare {
  double gbps = 0;        // payload; 0: unknown
  int ports = 1;          // that share the narrowest link
  std::string link = {};  // "x16 at 8 GT/s"
  // The same of its own slot alone: what a GPU below the same switch sends goes through no other link.
  double slot_gbps = 0;
};
// By PCI address; only those of which it is known.
std::map<std::string, PcieShare> pcie_shares(const Files& files, const std::vector<std::string>& pci);

}  // namespace muster
