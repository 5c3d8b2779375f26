// Finds the network port that has a given address: traffic from there uses it, not the fastest port.
#include <ifaddrs.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "host/port_ability.h"
#include "host/rails.h"
#include "kernels/common/kernels.h"
#include "kernels/link/link.h"
#include "kernels/rdma/rdma.h"

namespace muster::kernels {
namespace {

// Empty if there is none.
std::string interface_of(const std::string& address) {
  ifaddrs* list = nullptr;
  if (address.empty() || ::getifaddrs(&list) != 0) return "";
  std::string out;
  for (const ifaddrs* i = list; i && out.empty(); i = i->ifa_next) {
    const int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;
    if (family != AF_INET && family != AF_INET6) continue;
    char text[NI_MAXHOST] = {};
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (::getnameinfo(i->ifa_addr, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0 &&
        address == text)
      out = i->ifa_name;
  }
  ::freeifaddrs(list);
  return out;
}

Json described(const Files& files, const std::string& interface) {
  const std::string folder = "/sys/class/net/" + interface, device = folder + "/device";
  Json out = {{"interface", interface}};
  if (const double gbps = interface_gbps(files, interface); gbps > 0)
    out["speed_mbps"] = std::lround(gbps * 1000);
  const std::string pci = pci_of_interface(files, interface);
  const bool only = files.list(device + "/net").size() <= 1;
  const int number = std::atoi(files.read_line(folder + "/dev_port", "0").c_str()) + 1;
  if (!pci.empty()) out["place"] = port_place(pci, number, only);
  if (const std::string model = adapter_model(files, device); !model.empty()) out["model"] = model;
  const PortAbility ability = port_ability(files, interface, device);
  if (ability.gbps > 0) out["ability_gbps"] = ability.gbps, out["ability_source"] = ability.source;
  if (ability.partner_gbps > 0) out["partner_gbps"] = ability.partner_gbps;
  return out;
}

}  // namespace

Json own_port(const Files& files, const std::string& address) {
  const std::string name = interface_of(address);
  return name.empty() ? Json() : port_named(files, name);
}

Json port_named(const Files& files, const std::string& name) {
  Json out = {{"interface", name}, {"mac", files.read_line("/sys/class/net/" + name + "/address")}};
  // The file holds -1 without a link, and cannot be read if the driver does not report a speed.
  if (const double gbps = interface_gbps(files, name); gbps > 0) out["speed_mbps"] = std::lround(gbps * 1000);
  out["ports"] = Json::array();
  for (const auto& port : ports_below(files, name)) out["ports"].push_back(described(files, port));
  return out;
}

int streams_for(double speed_mbps, size_t cores) {
  const double wanted = std::ceil(speed_mbps / 10000);
  const int most = std::min(kMostStreams, static_cast<int>(std::max<size_t>(1, cores)));
  return std::clamp(wanted > kMostStreams ? kMostStreams : static_cast<int>(wanted), 1, most);
}

Json active_rails(const Files& files) {
  Json out = Json::array();
  std::vector<RdmaPort> ports = rail_ports(files);
  std::erase_if(ports, [](const RdmaPort& port) { return !port.active; });
  const auto near = nearest_to_gpus(files, ports);
  std::vector<std::string> functions;
  for (const auto& port : ports)
    if (!port.pci.empty()) functions.push_back(port.pci);
  const auto shares = pcie_shares(files, functions);
  for (const auto& port : ports) {
    out.push_back({{"label", port.label}, {"rate_gbps", port.rate_gbps}, {"rate_text", port.rate_text}});
    if (std::count(near.begin(), near.end(), port.label) > 0) out.back()["near_gpu"] = true;
    if (const auto share = shares.find(port.pci); share != shares.end())
      out.back()["slot_gbps"] = rounded(share->second.slot_gbps);
  }
  return out;
}

}  // namespace muster::kernels
