// Assigns a node's network ports to its rails and to the storage network.
//
// A port that the spec names is used. Otherwise one is selected among the physical ports of the right kind
// that are neither the provisioning port nor named in the spec: for a rail the port nearest to its GPU
// (base/rail_choice.h), for storage the only candidate, or the only one with a link. If that is ambiguous,
// the step fails. A choice once made is kept: a dead adapter must not move the following rails to other
// networks. Thread safety: plain value types, stateless functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/record.h"
#include "host/net_ports.h"
#include "host/rails.h"
#include "sys/os.h"

namespace muster::steps {

// The ports of host/net_ports.h that are not part of a bridge or a bond.
std::vector<NetPort> physical_ports(const Files& files);

struct WantedPort {
  int rail = -1;  // -1: the storage port
  std::string address, network, gateway, port, kind = "ethernet";
  int64_t mtu = 0;  // 0: any
  bool is_ethernet() const { return kind != "infiniband"; }
  std::string title() const { return PortRecord{rail, {}, {}, {}}.title(); }
  int prefix() const;
  // Used in file names: "rail3", "storage"
  std::string key() const { return rail < 0 ? "storage" : "rail" + std::to_string(rail); }
};
MUSTER_RECORD(WantedPort, address, network, opt(gateway), opt(port), opt(mtu), opt(kind))

struct GivenPort {
  WantedPort want;
  NetPort port;
};
struct PortsRequested {
  const Files& files;
  std::string node;  // this node's name, for messages
  std::string mac;   // MAC address of the provisioning port
  NetworksRecord before;
  int gpus_declared = 0;  // 0: not in the spec
};
// Assigns a port to each entry of `wanted`, in that order. Code::not_found: a port is missing.
// Code::conflict: there are more candidates than needed, and their links do not decide; `open` lists them.
Result<std::vector<GivenPort>> give_ports(const PortsRequested& requested,
                                          const std::vector<WantedPort>& wanted, std::vector<NetPort>& open);

// The record of the step `networks`. not_found: it lists no rails.
Result<NetworksRecord> record_with_rails(const Files& files);

}  // namespace muster::steps
