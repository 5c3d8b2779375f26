// The network ports of this machine: which of the interfaces that the kernel shows are physical ports, with
// the reason for each that is not. The only place that decides this: facts, the choice of ports for rails,
// counters and the search for the controller's own addresses read this list.
//
// An interface without hardware of its own (loopback, bridge, bond, VLAN, macvlan, tunnel) is not listed.
// Reads /sys only. Thread safety: plain value types, stateless functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/left_out.h"
#include "sys/os.h"

namespace muster {

struct NetPort {
  std::string name = {};
  std::string mac = {};   // lower case, its own: a port of a bond shows the bond's address
  std::string pci = {};   // "0000:41:00.0"; empty: none
  std::string path = {};  // pci_path() of base/rail_choice.h
  std::string driver = {};
  bool ethernet = true;    // false: InfiniBand
  bool link = false;       // false also while the interface is down
  int64_t speed_mbps = 0;  // 0: unknown
  int number = 0;          // distinguishes the ports of one PCI function
  bool joined = false;     // part of a bond, a bridge or the like
  Why why = Why::real;
  std::string said() const;  // for messages: "eth5 (0000:41:00.0)"
};

// All interfaces with hardware, by PCI address, port number and name. `sys`: where sysfs is.
std::vector<NetPort> net_devices(const Files& files, const std::string& sys = "/sys");
// Those that are physical ports.
std::vector<NetPort> net_ports(const Files& files, const std::string& sys = "/sys");

// True for the interface of a virtual function or subfunction in the switch of its adapter.
bool is_representor(const Files& files, const std::string& interface);
// The address of an interface (a folder such as /sys/class/net/eth0), its own also in a bond; lower case.
std::string own_mac(const Files& files, const std::string& folder);

}  // namespace muster
