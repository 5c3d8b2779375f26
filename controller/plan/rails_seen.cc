#include "controller/plan/rails_seen.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/rail_choice.h"

namespace muster {
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
