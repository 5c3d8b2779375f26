#include "controller/plan/interconnect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/rail_choice.h"
#include "controller/engines/engine.h"

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

// The traffic class that puts RDMA into the lossless priority: its DSCP (the lowest that maps to it) and
// ECT(0), the mark of a sender that reacts to congestion marks. -1: no DSCP maps to a lossless priority.
int traffic_class_of(const RailQos& qos) {
  constexpr int kEct = 2;
  for (const auto& [dscp, priority] : qos.dscp)
    if (std::count(qos.pfc.begin(), qos.pfc.end(), priority) > 0) return dscp << 2 | kEct;
  return -1;
}

// Firewall: other nodes on a rail may reach this node's address on that rail, but none of its others.
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
          {"rail_traffic_class", node.rails.empty() ? -1 : traffic_class_of(spec.network.rails.qos)},
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

namespace {

constexpr size_t kEthernetMac = 17;  // characters; InfiniBand addresses are longer

bool is_named(const NodeSpec& node) {
  return std::any_of(node.rails.begin(), node.rails.end(), [](const PortSpec& r) { return !r.port.empty(); });
}

bool is_port(const NicFacts& nic, const std::string& named) {
  return named == nic.mac || named == nic.pci || named == nic.name;
}

}  // namespace

std::string rails_seen(const Spec& spec, const NodeSpec& node, const HardwareFacts& facts) {
  if (node.rails.empty() || is_named(node)) return "";
  const bool ethernet = spec.network.rails.kind != "infiniband";
  const std::string& storage = node.storage.port;
  RailQuestion question;
  std::vector<std::string> addresses;
  bool storage_found = storage.empty();
  for (const NicFacts& nic : facts.nics) {
    if (nic.pci_path.empty()) continue;
    storage_found = storage_found || is_port(nic, storage);
    if (nic.mac == node.mac || is_port(nic, storage) || (nic.mac.size() == kEthernetMac) != ethernet)
      continue;
    // Ports are named by PCI address, because interfaces may have other names in the installed system.
    question.ports.push_back({nic.pci, nic.pci_path, nic.link_up, nic.speed_mbps});
    addresses.push_back(nic.pci);
  }
  if (addresses.empty() || !storage_found) return "";
  for (const GpuFacts& gpu : facts.gpus) question.gpus.push_back(gpu.pci_path);
  question.count = node.rails.size();
  question.gpus_declared = node.hardware.gpus.value_or(0);
  const auto answer = choose_rails(question);
  if (!answer)
    return "cannot be derived from the inventory, so the node chooses the ports: " + answer.error().message;
  std::vector<std::string> parts;
  for (size_t i = 0; i < answer->ports.size(); ++i)
    parts.push_back(fmt::format("rail {} = {}", i, addresses[answer->ports[i]]));
  return fmt::format("{} ({})", fmt::join(parts, ", "),
                     answer->by_gpu ? "each nearest to its GPU" : "by PCI address");
}

std::vector<std::string> rail_notes(const std::map<std::string, std::string>& seen_of_node) {
  std::map<std::string, std::vector<std::string>> nodes;
  for (const auto& [node, text] : seen_of_node)
    if (!text.empty()) nodes[text].push_back(node);
  std::vector<std::string> out;
  for (const auto& [text, names] : nodes)
    out.push_back(fmt::format("rails of {}: {}", fmt::join(names, ", "), text));
  return out;
}

}  // namespace muster
