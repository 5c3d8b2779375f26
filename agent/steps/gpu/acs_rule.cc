#include "agent/steps/gpu/acs_rule.h"

#include <cstdlib>
#include <map>
#include <set>

#include "agent/steps/step_modules.h"

namespace muster::steps {
namespace {

constexpr const char* kPci = "/sys/bus/pci/devices";
constexpr uint16_t kNvidia = 0x10de, kMellanox = 0x15b3, kAmd = 0x1002;
constexpr uint16_t kConnectXDma = 0x2100;                     // the DMA function of a ConnectX-8
constexpr uint16_t kGracePorts[] = {0x22b1, 0x22b2, 0x22b8};  // root ports of Grace

constexpr uint16_t kSv = 1, kRr = 1 << 2, kCr = 1 << 3, kUf = 1 << 4;

bool is_bridge(const PciNode& node) { return node.device_class >> 8 == 0x0604; }
bool is_gpu(const PciNode& node) {
  const uint32_t kind = node.device_class >> 8;
  if (kind == 0x0302) return true;
  return (kind == 0x0300 && node.vendor == kNvidia) ||
         ((kind == 0x0380 || kind == 0x1200) && node.vendor == kAmd);
}
// True for devices that a GPU exchanges data with directly: InfiniBand, RDMA NICs, NVMe.
bool is_partner(const PciNode& node) {
  const uint32_t kind = node.device_class >> 8;
  return kind == 0x0207 || (kind == 0x0200 && node.vendor == kMellanox) || kind == 0x0108;
}
bool is_dma_function(const PciNode& node) { return node.vendor == kMellanox && node.device == kConnectXDma; }
bool is_grace_port(const PciNode& node) {
  if (node.vendor != kNvidia) return false;
  for (const uint16_t id : kGracePorts)
    if (node.device == id) return true;
  return false;
}

class Tree {
 public:
  explicit Tree(const std::vector<PciNode>& nodes) {
    for (const auto& node : nodes) nodes_[node.address] = &node;
  }

  // Returns the bridges above a device, the nearest one first, the root port last.
  std::vector<const PciNode*> path(const PciNode& node) const {
    std::vector<const PciNode*> out;
    for (std::string up = node.parent; !up.empty() && out.size() < 32;) {
      const auto it = nodes_.find(up);
      if (it == nodes_.end() || !is_bridge(*it->second)) break;
      out.push_back(it->second);
      up = it->second->parent;
    }
    return out;
  }
  const std::map<std::string, const PciNode*>& nodes() const { return nodes_; }

 private:
  std::map<std::string, const PciNode*> nodes_;
};

using Settings = std::map<std::string, AcsSetting>;

// Adds the settings for a DMA function and a GPU below two nested switches of a Grace root port: root port ->
// switch -> {DMA function, switch -> GPU}. True if there is such a pair.
bool dma_direct(const Tree& tree, const PciNode& dma, const std::vector<const PciNode*>& gpus,
                Settings& out) {
  const auto dma_path = tree.path(dma);
  if (dma_path.empty() || !is_grace_port(*dma_path.back())) return false;
  for (const PciNode* gpu : gpus) {
    const auto gpu_path = tree.path(*gpu);
    if (gpu_path.empty() || gpu_path.back() != dma_path.back()) continue;
    // Follows both paths down from the root port as long as they are the same; the next ports are where they
    // diverge.
    size_t common = 1;
    while (common < dma_path.size() && common < gpu_path.size() &&
           dma_path[dma_path.size() - 1 - common] == gpu_path[gpu_path.size() - 1 - common])
      ++common;
    if (common >= dma_path.size() || common >= gpu_path.size()) continue;
    const std::string nic_port = dma_path[dma_path.size() - 1 - common]->address;
    const std::string gpu_port = gpu_path[gpu_path.size() - 1 - common]->address;
    const std::string root = dma_path.back()->address;
    out[nic_port] = {nic_port, kRr, kUf | kCr | kSv, "DMA-direct: towards the DMA function"};
    out[gpu_port] = {gpu_port, kCr, kUf | kRr | kSv, "DMA-direct: towards the GPU"};
    out[root] = {root, kSv, kUf | kCr | kRr, "DMA-direct: root port"};
    return true;
  }
  return false;
}

}  // namespace

std::vector<AcsSetting> choose_acs(const std::vector<PciNode>& nodes) {
  const Tree tree(nodes);
  std::vector<const PciNode*> gpus;
  for (const auto& [address, node] : tree.nodes())
    if (is_gpu(*node)) gpus.push_back(node);
  Settings settings;
  std::set<std::string> direct;  // root ports to which the DMA-direct rule applies
  for (const auto& [address, node] : tree.nodes())
    if (is_dma_function(*node) && dma_direct(tree, *node, gpus, settings))
      direct.insert(tree.path(*node).back()->address);

  // root port -> devices below it that may exchange data directly
  std::map<std::string, std::vector<const PciNode*>> below;
  std::set<std::string> with_gpu;
  for (const auto& [address, node] : tree.nodes()) {
    if (!is_gpu(*node) && !is_partner(*node)) continue;
    const auto path = tree.path(*node);
    if (path.empty() || direct.count(path.back()->address)) continue;
    below[path.back()->address].push_back(node);
    if (is_gpu(*node)) with_gpu.insert(path.back()->address);
  }
  for (const auto& [root, devices] : below) {
    // Functions of one device share their port; they reach each other without a bridge.
    std::set<std::string> places;
    for (const PciNode* device : devices)
      places.insert(device->address.substr(0, device->address.rfind('.')));
    if (!with_gpu.count(root) || places.size() < 2) continue;
    for (const PciNode* device : devices)
      for (const PciNode* bridge : tree.path(*device))
        settings[bridge->address] = {bridge->address, kAcsRedirects, 0, "classic"};
  }
  std::vector<AcsSetting> out;
  for (const auto& [address, setting] : settings) out.push_back(setting);
  return out;
}

std::vector<PciNode> read_pci_tree(const Files& files) {
  const auto number = [&](const std::string& path) {
    return static_cast<uint32_t>(std::strtoul(files.read_line(path, "0").c_str(), nullptr, 16));
  };
  std::vector<PciNode> out;
  for (const auto& address : files.list(kPci)) {
    const std::string folder = std::string(kPci) + "/" + address;
    PciNode node{address, "", number(folder + "/class"), static_cast<uint16_t>(number(folder + "/vendor")),
                 static_cast<uint16_t>(number(folder + "/device"))};
    // .../pci0000:2b/0000:2b:00.0/0000:2c:00.0: the component before the last is the parent bridge, or the
    // host bridge "pci0000:2b".
    if (const auto target = files.read_link(folder); target.ok()) {
      const auto parts = split(*target, '/');
      if (parts.size() >= 2 && !parts[parts.size() - 2].starts_with("pci"))
        node.parent = parts[parts.size() - 2];
    }
    out.push_back(std::move(node));
  }
  return out;
}

}  // namespace muster::steps
