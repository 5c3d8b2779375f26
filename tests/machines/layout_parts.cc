#include "tests/machines/layout_parts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/machines/description.h"

namespace muster::machines {

namespace fs = std::filesystem;

// ---- files

void Tree::put_bytes(const std::string& path, const std::string& bytes) const {
  folder(path.substr(0, path.rfind('/')));
  std::ofstream(root_ + path, std::ios::binary) << bytes;
}

void Tree::put(const std::string& path, const std::string& content) const {
  put_bytes(path, content.empty() ? content : content + "\n");
}

void Tree::append(const std::string& path, const std::string& line) const {
  std::ofstream(root_ + path, std::ios::binary | std::ios::app) << line << "\n";
}

std::string Tree::get(const std::string& path) const {
  std::ifstream in(root_ + path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void Tree::folder(const std::string& path) const { fs::create_directories(root_ + path); }

void Tree::link(const std::string& path, const std::string& target) const {
  folder(path.substr(0, path.rfind('/')));
  fs::create_symlink(target, root_ + path);
}

void Tree::link_up(const std::string& path, const std::string& target) const {
  // By way of the folder above the target, also where that is above the link: "../../../0000:1a:00.0".
  const std::string above = target.substr(0, target.rfind('/')), here = path.substr(0, path.rfind('/'));
  link(path, fs::path(above).lexically_relative(here).string() + target.substr(target.rfind('/')));
}

void Tree::room(const std::string& path, uint64_t bytes) const {
  put(path, "");
  fs::resize_file(root_ + path, bytes);
}

// ---- processors and modules

namespace {

std::string cpuinfo(const Json& cpu, int logical, int core, int socket) {
  if (text(cpu, "vendor") == "ARM")
    return fmt::format(
        "processor\t: {}\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd sve sve2\nCPU implementer\t: 0x41\n"
        "CPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: 0xd4f\nCPU revision\t: 0\n",
        logical);
  return fmt::format(
      "processor\t: {}\nvendor_id\t: {}\ncpu family\t: {}\nmodel\t\t: {}\nmodel name\t: {}\nmicrocode\t: "
      "0x2b0005c0\nphysical id\t: {}\ncore id\t\t: {}\n",
      logical, text(cpu, "vendor"), whole(cpu, "family"), whole(cpu, "number"), text(cpu, "model"), socket,
      core);
}

}  // namespace

void write_processors(const Tree& tree, const Json& node) {
  const Json& cpu = at(node, "cpu");
  const int sockets = whole(cpu, "sockets", 1), cores = whole(cpu, "cores"), threads = whole(cpu, "threads"),
            all = sockets * cores * threads, nodes = whole(cpu, "numa", sockets);
  std::string info;
  std::vector<std::string> lists(static_cast<size_t>(nodes));
  for (int i = 0; i < all; ++i) {
    const int core = i % (sockets * cores), socket = core / cores;
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu{}", i);
    tree.put(folder + "/topology/core_id", std::to_string(core % cores));
    tree.put(folder + "/topology/die_id", "0");
    tree.put(folder + "/topology/physical_package_id", std::to_string(socket));
    tree.put(folder + "/thermal_throttle/package_throttle_count", "0");
    for (const char* key : {"base", "max"})
      if (const int mhz = whole(cpu, fmt::format("{}_mhz", key)); mhz > 0 && i == 0)
        tree.put(fmt::format("{}/cpufreq/{}", folder, *key == 'b' ? "base_frequency" : "cpuinfo_max_freq"),
                 std::to_string(mhz * 1000));
    info += cpuinfo(cpu, i, core % cores, socket) + "\n";
    std::string& list = lists[static_cast<size_t>(core * nodes / (sockets * cores))];
    list += (list.empty() ? "" : ",") + std::to_string(i);
  }
  tree.put("/sys/devices/system/cpu/online", fmt::format("0-{}", all - 1));
  tree.put("/proc/cpuinfo", info);
  for (int n = 0; n < nodes; ++n)
    tree.put(fmt::format("/sys/devices/system/node/node{}/cpulist", n), lists[static_cast<size_t>(n)]);
}

std::string memory_device(const MemoryDevice& of) {
  std::string out(0x5c, '\0');
  const auto word = [&](size_t at, unsigned value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) out[at + i] = static_cast<char>(value >> (8 * i) & 0xff);
  };
  word(0, 17, 1);
  word(1, static_cast<unsigned>(out.size()), 1);
  word(0x0c, of.mib < 0x7fff ? of.mib : 0x7fff, 2);
  word(0x10, 1, 1);
  word(0x11, 2, 1);
  word(0x12, of.type, 1);
  word(0x15, of.mt_s, 2);
  word(0x1c, of.mib, 4);
  word(0x20, of.mt_s, 2);
  word(0x28, 3, 1);  // DRAM
  return out + of.locator + '\0' + of.locator + '\0' + '\0';
}

// ---- places

namespace {

// "0000:1b:00.0" -> "0000:", 0x1b
std::pair<std::string, int> bus_of(const std::string& address) {
  return {address.substr(0, 5), std::stoi(address.substr(5, 2), nullptr, 16)};
}

// "32" of [16, 32]; several numbers are written as sysfs does.
void put_link(const Tree& tree, const std::string& folder, const char* which, const Json& link) {
  if (!link.is_array() || link.empty()) return;
  tree.put(fmt::format("{}/{}_link_width", folder, which), fmt::format("{:g}", link[0].get<double>()));
  tree.put(fmt::format("{}/{}_link_speed", folder, which),
           fmt::format("{:.1f} GT/s PCIe", link[1].get<double>()));
}

// Vital product data: the product's name, and a read-only part with one vendor's field.
std::string vital_data(const std::string& product, const std::string& field) {
  const auto sized = [](char tag, const std::string& content) {
    return std::string{tag, static_cast<char>(content.size()), '\0'} + content;
  };
  const std::string keyword = std::string("V2") + static_cast<char>(field.size()) + field;
  return sized('\x82', product) + sized('\x90', keyword) + '\x78';
}

}  // namespace

Places::Places(const Tree& tree, const Json& node) : tree_(tree), sockets_(whole(node, "cpu/sockets", 1)) {
  tree_.folder("/sys/bus/pci/devices");
}

std::string Places::folder(const std::string& address) const {
  const auto found = folders_.find(address);
  if (found == folders_.end()) FAIL("no device was added at " << address);
  return found->second;
}

void Places::bridge(const std::string& folder, const Json& link, bool root_port) {
  const std::string address = folder.substr(folder.rfind('/') + 1);
  if (!folders_.emplace(address, folder).second) return;
  tree_.put(folder + "/class", "0x060400");
  tree_.put(folder + "/vendor", root_port ? "0x8086" : "0x1000");
  tree_.put(folder + "/device", root_port ? "0x352a" : "0xc030");
  put_link(tree_, folder, "current", link);
  put_link(tree_, folder, "max", link);
  for (const char* file : {"aer_dev_correctable", "aer_dev_fatal", "aer_dev_nonfatal"})
    tree_.put(folder + "/" + file, *(file + 8) == 'c' ? "TOTAL_ERR_COR 0" : "TOTAL_ERR 0");
  tree_.link_up("/sys/bus/pci/devices/" + address, folder);
}

// The port that a device is plugged into: of the root complex, or of the switch that it names.
std::string Places::above(const Json& device) {
  const auto [domain, bus] = bus_of(text(device, "at"));
  const Json slot = device.contains("slot")  ? device["slot"]
                    : device.contains("max") ? device["max"]
                                             : at(device, "link");
  if (bus == 0) return "/sys/devices/pci" + domain + "00";
  const std::string switch_at = text(device, "under");
  const int first = switch_at.empty() ? bus : bus_of(switch_at).second;
  std::string folder = fmt::format("/sys/devices/pci{0}{1:02x}/{0}{1:02x}:01.0", domain, first - 1);
  bridge(folder, slot, true);
  if (switch_at.empty()) return folder;
  folder += "/" + switch_at;
  bridge(folder, slot, false);
  auto& ports = below_[switch_at];
  const int port = ports.emplace(std::to_string(bus), static_cast<int>(ports.size())).first->second;
  folder += fmt::format("/{}{:02x}:{:02x}.0", domain, first + 1, port);
  bridge(folder, slot, false);
  return folder;
}

void Places::function(const std::string& folder, const Json& device) {
  const std::string id = text(device, "id"), address = text(device, "at");
  tree_.put(folder + "/class", text(device, "class"));
  tree_.put(folder + "/vendor", "0x" + id.substr(0, 4));
  tree_.put(folder + "/device", "0x" + id.substr(5));
  tree_.put(folder + "/numa_node",
            std::to_string(whole(device, "numa", sockets_ > 1 ? whole(device, "half") : 0)));
  const int numa = whole(device, "numa", sockets_ > 1 ? whole(device, "half") : 0);
  if (numa >= 0)
    tree_.link(folder + "/local_cpulist",
               tree_.root() + fmt::format("/sys/devices/system/node/node{}/cpulist", numa));
  put_link(tree_, folder, "current", at(device, "link"));
  put_link(tree_, folder, "max", device.contains("max") ? device["max"] : at(device, "link"));
  if (device.contains("product"))
    tree_.put_bytes(folder + "/vpd", vital_data(text(device, "product"), text(device, "vpd")));
  if (device.contains("aer")) {
    tree_.put(folder + "/aer_dev_correctable", "RxErr 0\nTOTAL_ERR_COR 0");
    tree_.put(folder + "/aer_dev_fatal", "TOTAL_ERR_FATAL 0");
    tree_.put(folder + "/aer_dev_nonfatal", "TOTAL_ERR_NONFATAL 0");
  }
  const std::string driver = text(device, "driver");
  if (driver.empty()) return;
  tree_.folder("/sys/bus/pci/drivers/" + driver);
  tree_.link_up(folder + "/driver", "/sys/bus/pci/drivers/" + driver);
}

void Places::add(const Json& device) {
  const std::string address = text(device, "at"), parent = text(device, "physfn");
  std::string folder;
  if (parent.empty()) {
    folder = above(device) + "/" + address;
  } else {  // a virtual function lies beside its physical one
    const std::string physical = this->folder(parent);
    folder = physical.substr(0, physical.rfind('/')) + "/" + address;
    tree_.link_up(folder + "/physfn", physical);
    int number = 0;
    while (fs::is_symlink(fmt::format("{}{}/virtfn{}", tree_.root(), physical, number))) ++number;
    tree_.link_up(fmt::format("{}/virtfn{}", physical, number), folder);
    tree_.put(physical + "/sriov_numvfs", std::to_string(number + 1));
  }
  if (!folders_.emplace(address, folder).second) FAIL("two devices at " << address);
  function(folder, device);
  tree_.link_up("/sys/bus/pci/devices/" + address, folder);
}

}  // namespace muster::machines
