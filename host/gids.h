// GIDs of an Ethernet port's RDMA device (RoCE v2): the addresses that its packets carry. An index is a
// place in the kernel's table and depends on the order in which addresses were configured, so it is looked
// up whenever it is used and never stored; what stays is the address. Thread safety: stateless functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sys/os.h"

namespace muster {

struct Gid {
  int index = -1;
  std::string address = {};    // "10.100.0.11", "fd00:100::11"
  std::string interface = {};  // the port's own, or a VLAN on it; empty: unknown
  bool ipv4() const { return address.find(':') == std::string::npos; }
};

// The GIDs of addresses that other nodes can be configured with: no link-local ones, which each port has. The
// IPv4 ones first, otherwise by index. `folder`: "/sys/class/infiniband/mlx5_0/ports/1".
std::vector<Gid> roce_gids(const Files& files, const std::string& folder);

// Of each side one, in the same network as far as their addresses show: of the same family (IPv4, if both
// have it), with the most leading bits in common. Indices into the lists; -1, -1: there are no such two.
std::pair<int, int> gids_of_one_network(const std::vector<Gid>& here, const std::vector<Gid>& there);

// "10.100.0.11/32", "10.100.0.0/21": the smallest network that contains all these addresses, as
// NCCL_IB_ADDR_RANGE takes it. Empty: there are none, they are of two families, or one is not an address.
std::string range_of_addresses(const std::vector<std::string>& addresses);
bool is_in_range(const std::string& address, const std::string& range);

}  // namespace muster
