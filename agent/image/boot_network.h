// The one network that the RAM system needs: the route to the controller, as on a kernel command line.
//
// Written by the controller for a machine that netboots (an address on one port), and by the agent for one
// that hands over to the RAM system itself: the address in use, on its port, bond or VLAN, identified by the
// hardware's own MACs, because port names differ between systems. Nothing else of the old system's network
// (other networks, names, bridges for virtual machines) is taken over: the RAM system reaches only the
// controller. Arguments: muster.ip=CIDR muster.mac=MAC, and if applicable: muster.gateway=ADDRESS
// muster.vlan=ID muster.bond=MODE:MAC,MAC muster.mtu=BYTES. IPv4. Thread safety: stateless functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/wire.h"
#include "sys/os.h"

namespace muster {

struct RamNetwork {
  std::string mac;  // MAC of the port; for a bond, that of its first port
  std::string cidr;
  std::string gateway = {};             // empty: the controller is on this network
  int vlan = 0;                         // 0: untagged
  std::string bond_mode = {};           // the kernel's name, "802.3ad"; empty: no bond
  std::vector<std::string> ports = {};  // MACs of all ports of the bond
  int mtu = 0;                          // 0: the driver's default
};

// The value of key=value; "" if absent.
std::string cmdline_value(const std::string& cmdline, const std::string& key);
// Reads the arguments; Code::invalid names a missing or wrong one. iPXE sets an undeclared machine's address.
Result<RamNetwork> ram_network(const std::string& cmdline);
// " muster.ip=... muster.mac=...", in the form that ram_network() reads.
std::string network_arguments(const RamNetwork& network);

// False if either is invalid.
bool on_network(const std::string& cidr, const std::string& address);

// The running system's route to `address`. Code::denied names what the RAM system does not support: IPv6, an
// address of this machine itself, tunnels, stacked VLANs, a bridge of several ports, a port without its own
// MAC.
Result<RamNetwork> network_to(const Files& files, Process& process, const std::string& address);

// The provisioning network of a new system, for systemd-networkd: path -> content. `way`: this machine's
// route to the controller during installation; its bond or VLAN is also set up in the new system, because a
// machine without power control is reachable only through that network.
std::map<std::string, std::string> network_files(const wire::ImageJob& job, const RamNetwork& way);

}  // namespace muster
