#include "controller/plan/interconnect.h"

#include <fmt/format.h>

#include <algorithm>

#include "controller/engines/sections.h"

namespace muster {
namespace {

Json port_of(const PortSpec& port, int mtu) {
  Json out = {{"address", port.address}, {"network", port.network}, {"port", port.port}};
  if (!port.gateway.empty()) out["gateway"] = port.gateway;
  if (mtu > 0) out["mtu"] = mtu;
  return out;
}

Json rails_of(const Spec& spec, const NodeSpec& node) {
  const Rails& all = spec.network.rails;
  Json out = Json::array();
  for (size_t i = 0; i < node.rails.size(); ++i) {
    Json one = port_of(node.rails[i], all.mtu);
    one.update({{"rail", i}, {"kind", all.kind}});
    out.push_back(std::move(one));
  }
  return out;
}

Json qos_of(const RailQos& qos) {
  if (!qos.declared()) return nullptr;
  Json out = {{"pfc", qos.pfc}, {"dscp", Json::object()}, {"ets", Json::object()}};
  for (const auto& [dscp, priority] : qos.dscp) out["dscp"][std::to_string(dscp)] = priority;
  for (const auto& [priority, percent] : qos.ets) out["ets"][std::to_string(priority)] = percent;
  return out;
}

// Firewall rules: the other nodes on a rail may reach this node's address on that rail, but none of its other
// addresses.
Json rules_of(const NodeSpec& node) {
  Json out = Json::array();
  for (size_t i = 0; i < node.rails.size(); ++i)
    out.push_back({{"from", node.rails[i].network},
                   {"to", node.rails[i].address},
                   {"comment", fmt::format("rail {}", i)}});
  return out;
}

}  // namespace

Json interconnect_of(const Spec& spec, const NodeSpec& node) {
  Json storage = Json::array();
  if (node.storage.declared()) storage.push_back(port_of(node.storage, spec.network.storage.mtu));
  return {{"rails", rails_of(spec, node)},
          {"rail_gpus", node.hardware.gpus.value_or(0)},
          {"storage_port", storage},
          {"rail_qos", node.rails.empty() ? Json() : qos_of(spec.network.rails.qos)},
          {"rail_rules", rules_of(node)},
          {"rails_infiniband", !node.rails.empty() && spec.network.rails.kind == "infiniband"},
          {"foreign_ports", node.adopt.declared()}};
}

SectionNetwork::SectionNetwork(const Spec& spec, const StorageSpec& section)
    : cidr_(spec.network.provisioning.cidr) {
  bool anybody = false, all = true;
  for (const auto& node : spec.nodes) {
    if (!mounts(section, node)) continue;
    anybody = true;
    all = all && node.storage.declared();
  }
  on_storage_ = anybody && all;
  if (on_storage_) cidr_ = spec.network.storage.cidr;
}

}  // namespace muster
