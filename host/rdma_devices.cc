#include "host/rdma_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/pci_address.h"
#include "base/split.h"
#include "host/net_ports.h"
#include "host/pci_parts.h"

namespace muster {
namespace {

constexpr const char* kInfinibandClass = "/sys/class/infiniband";

// Splits off the digits at the end as a number, so that mlx5_2 is sorted before mlx5_10.
std::pair<std::string, long> number_behind(const std::string& name) {
  const size_t last = name.find_last_not_of("0123456789");
  const size_t digits = last == std::string::npos ? 0 : last + 1;
  return {name.substr(0, digits),
          digits < name.size() ? std::strtol(name.c_str() + digits, nullptr, 10) : -1};
}

// ibv_devinfo calls it Unspecified, sysfs Unknown.
LinkLayer layer_of(const std::string& text) {
  if (text == "InfiniBand") return LinkLayer::infiniband;
  if (text == "Ethernet") return LinkLayer::ethernet;
  return text.empty() ? LinkLayer::unknown : LinkLayer::none;
}

// XDR adapters have a second device, smi1, with a port for each plane of their port (since Linux 6.11). In
// switchdev mode a device has a port for each representor beside its own.
Why why_no_rail(const Files& files, const std::string& device, const std::string& port) {
  if (const Why function = why_of_function(files, device + "/device"); function != Why::real) return function;
  if (last_component(device).starts_with("smi")) return Why::manages_planes;
  const std::string interface = files.read_line(port + "/gid_attrs/ndevs/0");
  return !interface.empty() && is_representor(files, interface) ? Why::representor : Why::real;
}

}  // namespace

const char* to_string(LinkLayer layer) {
  switch (layer) {
    case LinkLayer::infiniband:
      return "InfiniBand";
    case LinkLayer::ethernet:
      return "Ethernet";
    case LinkLayer::none:
      return "Unspecified";
    case LinkLayer::unknown:
      break;
  }
  return "unknown";
}

bool RdmaPart::active() const {
  return has(state, "ACTIVE") && !has(state, "DEFER");  // a link that is being repaired: 5: ACTIVE_DEFER
}

std::string RdmaPart::label() const { return only ? device : fmt::format("{}/{}", device, port); }

bool rdma_label_before(const std::string& a, const std::string& b) {
  const auto key = [](const std::string& label) {
    const size_t slash = label.find('/');
    return std::pair(number_behind(label.substr(0, slash)),
                     number_behind(slash == std::string::npos ? "" : label.substr(slash + 1)));
  };
  return key(a) < key(b);
}

std::vector<RdmaPart> rdma_devices(const Files& files) {
  std::vector<std::string> devices = files.list(kInfinibandClass);
  std::sort(devices.begin(), devices.end(), rdma_label_before);
  std::vector<RdmaPart> out;
  for (const auto& name : devices) {
    const std::string device = fmt::format("{}/{}", kInfinibandClass, name);
    std::string pci;  // newer drivers have a device of the auxiliary bus below their PCI function
    for (const auto& at : split(files.read_link(device + "/device").value_or(""), '/'))
      if (is_pci_address(at)) pci = at;
    const auto ports = files.list(device + "/ports");
    for (const auto& number : ports) {
      RdmaPart part{name, std::atoi(number.c_str()), ports.size() == 1, device + "/ports/" + number};
      part.pci = pci;
      part.layer = layer_of(files.read_line(part.folder + "/link_layer"));
      part.state = files.read_line(part.folder + "/state");
      part.physical = files.read_line(part.folder + "/phys_state");
      part.why = why_no_rail(files, device, part.folder);
      out.push_back(std::move(part));
    }
  }
  return out;
}

std::vector<RdmaPart> rdma_parts(const Files& files) {
  std::vector<RdmaPart> out = rdma_devices(files);
  std::erase_if(out, [](const RdmaPart& part) { return part.why != Why::real; });
  return out;
}

}  // namespace muster
