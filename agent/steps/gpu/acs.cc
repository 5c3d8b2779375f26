#include "agent/steps/gpu/acs.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <set>

#include "agent/core/parameters.h"
#include "agent/steps/files/own_file.h"
#include "agent/steps/step_modules.h"
#include "base/json_dump.h"
#include "base/lower.h"
#include "base/pci_address.h"
#include "host/pci_parts.h"

namespace muster::steps {
namespace {

struct WantedAcs {
  Texts bridges;
};
MUSTER_PARAMETERS(WantedAcs, optional(bridges,
                                      "bridge addresses such as 0000:00:1c.0, which must all exist; default: "
                                      "derived from the topology"))

constexpr uint32_t kCapability = 0x000d;
constexpr size_t kControl = 6;  // offset of the control register in the capability

std::string folder_of(const std::string& bridge) { return "/sys/bus/pci/devices/" + bridge; }

uint32_t word_at(const std::string& config, size_t at, size_t bytes) {
  uint32_t out = 0;
  for (size_t i = 0; i < bytes; ++i)
    out |= static_cast<uint32_t>(static_cast<unsigned char>(config[at + i])) << (8 * i);
  return out;
}

// 0 if there is none.
Result<size_t> find_capability(const std::string& bridge, const std::string& config) {
  if (config.size() < 256)
    return fail(Code::denied, bridge + ": the configuration space cannot be read (run as root)");
  if (config.size() < 0x104) return size_t{0};  // no extended space: conventional PCI
  std::vector<bool> seen(config.size());
  for (size_t at = 0x100; at >= 0x100 && at + 8 <= config.size() && !seen[at];
       at = word_at(config, at, 4) >> 20) {
    seen[at] = true;
    const uint32_t header = word_at(config, at, 4);
    if (header == 0 || header == 0xffffffff) break;
    if ((header & 0xffff) == kCapability) return at;
  }
  return size_t{0};
}

Result<std::string> read_config(const Files& files, const std::string& bridge) {
  if (!files.exists(folder_of(bridge))) return fail(Code::not_found, "there is no PCI device " + bridge);
  return files.read(folder_of(bridge) + "/config");
}

Status write_word(const std::string& path, size_t at, uint16_t value) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return fail(Code::denied, path + ": " + strerror(errno));
  const unsigned char bytes[2] = {static_cast<unsigned char>(value & 0xff),
                                  static_cast<unsigned char>(value >> 8)};
  const ssize_t written = ::pwrite(fd, bytes, sizeof bytes, static_cast<off_t>(at));
  const int error = errno;
  ::close(fd);
  if (written == sizeof bytes) return Ok{};
  return fail(Code::failed, path + ": " + strerror(error));
}

uint16_t wanted_value(const AcsSetting& setting, uint16_t now) {
  return static_cast<uint16_t>((now & ~setting.clear) | setting.set);
}

// "2b:00.0" -> "0000:2b:00.0"
Result<std::string> full_address(std::string text) {
  if (text.size() == 7) text = "0000:" + text;
  if (!is_pci_address(text))
    return fail(Code::invalid, "acs: '" + text + "' is not a PCI address such as 0000:00:1c.0");
  return lower(text);
}

Result<std::vector<AcsSetting>> settings_of(const StepContext& context, const WantedAcs& want) {
  if (want.bridges.empty()) return choose_acs(read_pci_tree(context.files));
  std::vector<AcsSetting> out;
  for (const auto& bridge : want.bridges) {
    TRY(const std::string address, full_address(bridge));
    out.push_back({address, kAcsRedirects, 0, "named in the spec"});
  }
  return out;
}

// Describes a device that is passed through to a guest or reserved for one; "" if there is none. A vendor's
// driver that passes virtual functions through may have an unrelated name: `vfio-dev` (since Linux 6.1) and
// the groups below /dev/vfio show such devices.
std::string guests_device(const Files& files) {
  const std::string bus = "/sys/bus/pci/";
  for (const auto& driver : files.list(bus + "drivers"))
    if (passes_through(driver))
      for (const auto& name : files.list(bus + "drivers/" + driver))
        if (name.find(':') != std::string::npos) return name + " is bound to " + driver;
  for (const auto& name : files.list(bus + "devices")) {
    if (!files.list(folder_of(name) + "/vfio-dev").empty())
      return name + " is available to guests through VFIO";
    const std::string meant = files.read_line(folder_of(name) + "/driver_override");
    if (passes_through(meant)) return name + " is reserved for " + meant;
  }
  for (const auto& name : files.list("/dev/vfio"))
    if (name != "vfio" && name != "devices")
      return "/dev/vfio/" + name + " is present: the devices in this IOMMU group belong to a guest";
  for (const auto& name : files.list("/dev/vfio/devices"))
    return "/dev/vfio/devices/" + name + " belongs to a guest";
  for (const auto& name : files.list("/sys/bus/mdev/devices"))
    return name + " is a mediated device of a guest";
  return "";
}

// Fails if a device is passed through to a guest, because that requires the isolation.
Status check_no_passthrough(const Files& files) {
  const std::string found = guests_device(files);
  if (found.empty()) return Ok{};
  return fail(Code::denied, found + ": with ACS off, the guest could reach other devices");
}

std::vector<OwnFile> own_files(const std::vector<AcsSetting>& settings) {
  const char* service =
      "# Written by muster.\n[Unit]\nDescription=PCIe ACS off between GPUs, NICs and drives\n"
      "Before=docker.service slurmd.service "
      "nvidia-persistenced.service\nConditionPathExists=/etc/muster/acs.json\n"
      "StartLimitIntervalSec=0\n\n[Service]\nType=oneshot\nExecStart=/usr/sbin/muster-agent acs\n\n"
      "[Install]\nWantedBy=multi-user.target\n";
  const char* timer =
      "# Written by muster. A bus reset silently restores the kernel's policy.\n[Unit]\n"
      "Description=PCIe ACS stays "
      "off\n\n[Timer]\nOnBootSec=2min\nOnUnitActiveSec=5min\n\n[Install]\nWantedBy=timers.target\n";
  const char* rule =
      "# Written by muster. The kernel sends an event when a driver binds or an error recovery ends.\n"
      "SUBSYSTEM==\"pci\", ACTION==\"bind|change\", RUN+=\"/usr/bin/systemctl --no-block start "
      "muster-acs.service\"\n";
  return {{kAcsFile, acs_settings_text(settings), 0644},
          {"/etc/systemd/system/muster-acs.service", service, 0644},
          {"/etc/systemd/system/muster-acs.timer", timer, 0644},
          {"/etc/udev/rules.d/80-muster-acs.rules", rule, 0644}};
}

// The service module's parameters for each of the two units.
Json service_params() { return {{"names", {"muster-acs.service"}}, {"enabled", true}, {"running", false}}; }
Json timer_params() { return {{"names", {"muster-acs.timer"}}, {"enabled", true}}; }

Status registers_diff(const Files& files, const std::vector<AcsSetting>& settings, Diff& diff,
                      std::string& without) {
  for (const auto& setting : settings) {
    TRY(const auto value, read_acs(files, setting.bridge));
    if (!value)
      without += " " + setting.bridge;
    else if (*value != wanted_value(setting, *value))
      diff.add(fmt::format("{} ({}): {:04x} -> {:04x}", setting.bridge, setting.why, *value,
                           wanted_value(setting, *value)));
  }
  return Ok{};
}

Result<CheckResult> check_acs(StepContext& context, const WantedAcs& want) {
  if (!is_booted(context.files))
    return CheckResult{Holds::not_applicable, "an image has no PCI bridges; the step is checked on nodes"};
  TRY(const auto settings, settings_of(context, want));
  if (settings.empty())
    return CheckResult{Holds::not_applicable,
                       "no GPU shares a PCIe root port with another GPU, a NIC or a drive"};
  Diff diff;
  std::string without;
  TRY_(registers_diff(context.files, settings, diff, without));
  // Checked even if ACS is already off, because a guest that was started later is not isolated.
  if (const Status alone = check_no_passthrough(context.files); !alone.ok()) diff.add(alone.error().message);
  for (const auto& file : own_files(settings)) add_difference(context.files, file, diff);
  for (const auto& unit : {service_params(), timer_params()}) {
    if (!diff.empty()) break;
    TRY(const auto enabled, context.module("service")->check(context, unit));
    if (enabled.holds != Holds::yes) diff.add(enabled.diff);
  }
  CheckResult out = diff.result();
  if (!without.empty())
    out.note = "these bridges have no ACS capability, so there is nothing to turn off:" + without;
  return out;
}

Status apply_acs(StepContext& context, const WantedAcs& want) {
  TRY(const auto settings, settings_of(context, want));
  TRY_(check_no_passthrough(context.files));
  bool changed = false;
  for (const auto& file : own_files(settings)) {
    changed = changed || differs_from(context.files, file);
    TRY_(put(context.files, file));
  }
  if (changed) TRY_(reload_units(context));
  for (const auto& unit : {service_params(), timer_params()})
    TRY_(context.module("service")->apply(context, unit));
  for (const auto& setting : settings) {
    TRY(const bool has, write_acs(context.files, setting));
    (void)has;
  }
  return Ok{};
}

// Reads every register again, regardless of the files.
Status verify_acs(StepContext& context, const WantedAcs& want) {
  TRY(const auto settings, settings_of(context, want));
  Diff diff;
  std::string without;
  TRY_(registers_diff(context.files, settings, diff, without));
  if (diff.empty()) return Ok{};
  return fail(Code::failed, "ACS is still on: " + diff.result().diff);
}

}  // namespace

Result<std::optional<uint16_t>> read_acs(const Files& files, const std::string& bridge) {
  TRY(const std::string config, read_config(files, bridge));
  TRY(const size_t at, find_capability(bridge, config));
  if (at == 0) return std::optional<uint16_t>();
  return std::optional<uint16_t>(static_cast<uint16_t>(word_at(config, at + kControl, 2)));
}

Result<bool> write_acs(const Files& files, const AcsSetting& setting) {
  TRY(const std::string config, read_config(files, setting.bridge));
  TRY(const size_t at, find_capability(setting.bridge, config));
  if (at == 0) return false;
  const auto now = static_cast<uint16_t>(word_at(config, at + kControl, 2));
  const uint16_t want = wanted_value(setting, now);
  if (now == want) return true;
  TRY_(write_word(files.real(folder_of(setting.bridge) + "/config"), at + kControl, want));
  TRY(const auto after, read_acs(files, setting.bridge));
  if (after && *after == want) return true;
  return fail(Code::denied,
              fmt::format("the ACS control register of {} is {:04x} after the write, not {:04x}",
                          setting.bridge, after.value_or(0), want));
}

std::string acs_settings_text(const std::vector<AcsSetting>& settings) {
  Json out = Json::array();
  for (const auto& s : settings)
    out.push_back({{"bridge", s.bridge}, {"clear", s.clear}, {"set", s.set}, {"why", s.why}});
  return dump_json(out, 1) + "\n";
}

Result<std::vector<AcsSetting>> parse_acs_settings(const std::string& text) {
  TRY(const Json json, parse_json(text));
  if (!json.is_array()) return fail(Code::corrupt, "the file is not a list of bridges");
  std::vector<AcsSetting> out;
  for (const auto& element : json) {
    AcsSetting setting;
    JsonReader r(element, "bridge");
    r.get("bridge", setting.bridge);
    r.get("clear", setting.clear);
    r.get("set", setting.set);
    r.get_or("why", setting.why, std::string());
    TRY_(r.finish());
    TRY(setting.bridge, full_address(setting.bridge));
    out.push_back(std::move(setting));
  }
  return out;
}

Result<int> reapply_acs(const Files& files) {
  TRY(const std::string text, files.read(kAcsFile));
  TRY(const auto settings, parse_acs_settings(text));
  TRY_(check_no_passthrough(files));
  int changed = 0;
  std::string problems;
  for (const auto& setting : settings) {
    const auto before = read_acs(files, setting.bridge);
    const auto done = before.ok() ? write_acs(files, setting) : Result<bool>(before.error());
    if (!done.ok())
      problems +=
          (problems.empty() ? "" : "; ") + done.error().message;  // one error must not stop the others
    else if (*done && **before != wanted_value(setting, **before))
      ++changed;
  }
  if (!problems.empty()) return fail(Code::failed, problems);
  return changed;
}

StepModule acs_module() {
  return step_module<WantedAcs>({
      .name = "acs",
      .help =
          "Turns off PCIe Access Control Services (ACS) on the bridges between GPUs, NICs and NVMe drives "
          "that share a root port (classic rule), or configures ACS as a ConnectX-8 next to a Grace GPU "
          "requires; other bridges are not changed. The settings are applied again at boot, after driver "
          "binds and error recoveries, and every five minutes. This removes the isolation between these "
          "devices, so the step fails if a device is passed through to a guest. Bridges without the ACS "
          "capability are listed in the report and are not an error.",
      .check = check_acs,
      .apply = apply_acs,
      .verify = verify_acs,
  });
}

namespace {

constexpr const char* kPci = "/sys/bus/pci/devices";
constexpr uint16_t kNvidia = 0x10de, kMellanox = 0x15b3;
constexpr uint16_t kConnectXDma = 0x2100;                     // the DMA function of a ConnectX-8
constexpr uint16_t kGracePorts[] = {0x22b1, 0x22b2, 0x22b8};  // root ports of Grace

constexpr uint16_t kSv = 1, kRr = 1 << 2, kCr = 1 << 3, kUf = 1 << 4;

bool is_bridge(const PciNode& node) { return node.device_class >> 8 == 0x0604; }
bool is_gpu(const PciNode& node) {
  return pci_kind(fmt::format("0x{:04x}", node.vendor), fmt::format("0x{:06x}", node.device_class)) ==
         PciKind::gpu;
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

  // The bridges above a device, the nearest one first, the root port last.
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
    // Both paths are followed down from the root port until they diverge.
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
    // .../pci0000:2b/0000:2b:00.0/0000:2c:00.0: the parent, a bridge or the host bridge, precedes the last
    // part.
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
