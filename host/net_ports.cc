#include "host/net_ports.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "base/lower.h"
#include "base/placeholders.h"
#include "base/rail_choice.h"
#include "base/split.h"
#include "host/pci_parts.h"
#include "host/rails.h"

namespace muster {
namespace {

constexpr const char* kEthernet = "1";     // ARPHRD_ETHER
constexpr const char* kInfiniband = "32";  // ARPHRD_INFINIBAND

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

std::string linked_name(const Files& files, const std::string& link) {
  return last_component(files.read_link(link).value_or(""));
}

// The interface's own link is the path from the root complex; its device's links show the kind of device. The
// kernel's own name for an interface on USB is usb0.
bool is_on_usb(const Files& files, const std::string& folder) {
  const std::string name = last_component(folder);
  if (name.starts_with("usb") && is_number(name.substr(3))) return true;
  for (const std::string& link : {folder, folder + "/device"}) {
    const std::string way = files.read_link(link).value_or("");
    if (way.substr(0, way.rfind('/') + 1).find("/usb") != std::string::npos) return true;
  }
  return linked_name(files, folder + "/device/subsystem") == "usb" ||
         is_usb_driver(linked_name(files, folder + "/device/driver"));
}

// devlink names a representor after what it represents: pf0vf3, pf0sf88, c1pf0 (the host, seen from a DPU);
// the port itself is p0. Before Linux 5.1 mlx5 gave the number of the virtual function alone.
bool names_representor(const Files& files, const std::string& folder) {
  std::string name = files.read_line(folder + "/phys_port_name");
  if (is_number(name)) return !files.read_line(folder + "/phys_switch_id").empty();
  if (name.starts_with("c") && name.find("pf") != std::string::npos) name = name.substr(name.find("pf"));
  return name.starts_with("pf") && name.size() > 2 && is_number(name.substr(2, 1));
}

// True for an interface on the port of another, which has hardware all the same: an InfiniBand partition.
bool is_child(const Files& files, const std::string& folder) {
  const std::string own = files.read_line(folder + "/ifindex"), port = files.read_line(folder + "/iflink");
  return files.exists(folder + "/parent") || (!own.empty() && !port.empty() && own != port);
}

Why why_no_port(const Files& files, const std::string& folder) {
  const std::string device = folder + "/device";
  if (const Why function = why_of_function(files, device); function != Why::real) return function;
  if (names_representor(files, folder)) return Why::representor;
  if (is_on_usb(files, folder)) return Why::on_usb;
  if (is_child(files, folder)) return Why::child;
  // Hyper-V and virtio pair a virtual port with a function of an adapter that carries its data. A bond or a
  // bridge, the other kinds of master, has no hardware.
  if (files.exists(folder + "/master/device")) return Why::beneath_virtual;
  if (linked_name(files, device + "/subsystem") == "thunderbolt") return Why::thunderbolt;
  if (files.exists(folder + "/phy80211") || files.exists(folder + "/wireless")) return Why::wireless;
  return Why::real;
}

}  // namespace

std::string NetPort::said() const { return fmt::format("{} ({})", name, pci.empty() ? mac : pci); }

std::string own_mac(const Files& files, const std::string& folder) {
  const std::string own = lower(files.read_line(folder + "/bonding_slave/perm_hwaddr"));
  return is_station_address(own) ? own : lower(files.read_line(folder + "/address"));
}

bool is_representor(const Files& files, const std::string& interface) {
  return names_representor(files, "/sys/class/net/" + interface);
}

std::vector<NetPort> net_devices(const Files& files, const std::string& sys) {
  std::vector<NetPort> out;
  for (const auto& name : files.list(sys + "/class/net")) {
    const std::string folder = sys + "/class/net/" + name;
    const std::string type = files.read_line(folder + "/type", kEthernet);
    if (!files.exists(folder + "/device") || (type != kEthernet && type != kInfiniband)) continue;
    const std::string way = way_to_interface(files, name);
    NetPort port;
    port.name = name;
    port.mac = own_mac(files, folder);
    port.pci = pci_of_interface(files, name);
    port.path = pci_path(way);
    port.driver = linked_name(files, folder + "/device/driver");
    port.ethernet = type != kInfiniband;
    port.link = files.read_line(folder + "/carrier", "0") == "1";
    port.speed_mbps = std::max(0, std::atoi(files.read_line(folder + "/speed", "0").c_str()));
    port.number = std::atoi(files.read_line(folder + "/dev_port", "0").c_str());
    port.joined = files.exists(folder + "/master");
    port.why = why_no_port(files, folder);
    out.push_back(std::move(port));
  }
  // A PCI domain below a volume controller (VMD) has more digits than others.
  const auto key = [](const NetPort& p) {
    return std::tuple(p.pci.size(), p.pci, p.number, p.name.size(), p.name);
  };
  std::sort(out.begin(), out.end(), [&](const NetPort& a, const NetPort& b) { return key(a) < key(b); });
  return out;
}

std::vector<NetPort> net_ports(const Files& files, const std::string& sys) {
  std::vector<NetPort> out = net_devices(files, sys);
  std::erase_if(out, [](const NetPort& port) { return port.why != Why::real; });
  return out;
}

}  // namespace muster
