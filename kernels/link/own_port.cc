// Finds the network port that has a given address: traffic from there uses it, not the fastest port.
#include <ifaddrs.h>
#include <netdb.h>
#include <sys/socket.h>

#include <cstdlib>

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

}  // namespace

Json own_port(const Files& files, const std::string& address) {
  const std::string name = interface_of(address);
  if (name.empty()) return nullptr;
  const std::string folder = "/sys/class/net/" + name;
  Json out = {{"interface", name}, {"mac", files.read_line(folder + "/address")}};
  // The file holds -1 without a link, and cannot be read if the driver does not report a speed.
  if (const long speed = std::strtol(files.read_line(folder + "/speed", "0").c_str(), nullptr, 10); speed > 0)
    out["speed_mbps"] = speed;
  return out;
}

Json active_rails(const Files& files) {
  Json out = Json::array();
  for (const auto& port : rail_ports(files))
    if (port.active) out.push_back(port.rate_gbps);
  return out;
}

}  // namespace muster::kernels
