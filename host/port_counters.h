// Reads the error counters of this machine's ports (base/counter_table.h), and whether a port has a link.
// Thread safety: stateless functions; each call reads the files again.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

#include "base/counter_table.h"
#include "sys/os.h"

namespace muster {

// A file that holds one number; nothing if it is missing or holds something else.
std::optional<uint64_t> count_in(const Files& files, const std::string& path);

// By PortCounter::file, of the counters that this port's driver has. `folder`: /sys/class/net/eth0, or
// /sys/class/infiniband/mlx5_0/ports/1.
std::map<std::string, uint64_t> read_port_counters(const Files& files, const std::string& folder,
                                                   std::span<const PortCounter> rows);

// An RDMA port with a link, active or not. A driver that does not report the link itself (soft-RoCE) has one
// unless the port is down.
bool has_rdma_link(const std::string& state, const std::string& phys_state);
bool has_rdma_link(const Files& files, const std::string& folder);
// A network port that is up and has a carrier.
bool has_network_link(const Files& files, const std::string& folder);

}  // namespace muster
