#include "agent/boot/ram_network.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/if.h>
#include <linux/if_vlan.h>
#include <linux/route.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "agent/boot/ram_init.h"

namespace muster {
namespace {

constexpr const char* kBond = "mbond";

// Makes one ioctl call on a temporary socket.
Status call(unsigned long what, void* request, const std::string& purpose) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return fail(Code::failed, std::string("socket: ") + strerror(errno));
  const bool done = ::ioctl(fd, what, request) == 0 || errno == EEXIST;
  const int error = errno;
  ::close(fd);
  return done ? Status(Ok{}) : fail(Code::failed, purpose + ": " + strerror(error));
}

Result<ifreq> request_for(const std::string& device) {
  ifreq request = {};
  if (device.size() >= IFNAMSIZ) return fail(Code::invalid, "not a valid interface name: " + device);
  std::memcpy(request.ifr_name, device.data(), device.size());
  return request;
}

Status switch_up(const std::string& device) {
  TRY(ifreq request, request_for(device));
  TRY_(call(SIOCGIFFLAGS, &request, "flags of " + device));
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  return call(SIOCSIFFLAGS, &request, "switching on " + device);
}

Status set_mtu(const std::string& device, int mtu) {
  TRY(ifreq request, request_for(device));
  request.ifr_mtu = mtu;
  return call(SIOCSIFMTU, &request, fmt::format("MTU {} of {}", mtu, device));
}

Result<std::string> make_vlan(const std::string& device, int id) {
  vlan_ioctl_args request = {};
  const std::string made = fmt::format("{}.{}", device, id);
  if (made.size() >= sizeof request.device1)
    return fail(Code::invalid, "not a valid interface name: " + made);
  request.cmd = SET_VLAN_NAME_TYPE_CMD;
  request.u.name_type = VLAN_NAME_TYPE_RAW_PLUS_VID_NO_PAD;
  TRY_(call(SIOCSIFVLAN, &request, "setting the format of VLAN names"));
  request = {};
  request.cmd = ADD_VLAN_CMD;
  std::memcpy(request.device1, device.data(), device.size());
  request.u.VID = id;
  TRY_(call(SIOCSIFVLAN, &request, "VLAN " + made));
  return made;
}

Status add_default_route(const std::string& gateway) {
  rtentry route = {};
  const auto set = [](sockaddr& place, const std::string& text) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    if (!text.empty()) ::inet_pton(AF_INET, text.c_str(), &address.sin_addr);
    std::memcpy(&place, &address, sizeof address);
  };
  set(route.rt_dst, "");
  set(route.rt_genmask, "");
  set(route.rt_gateway, gateway);
  route.rt_flags = RTF_UP | RTF_GATEWAY;
  return call(SIOCADDRT, &route, "route through " + gateway);
}

}  // namespace

Result<std::string> make_bond(const Files& files, const RamNetwork& network,
                              const std::function<Status(const std::string&)>& load) {
  TRY_(load("bonding"));
  const std::string folder = std::string("/sys/class/net/") + kBond + "/bonding/";
  if (!files.exists(folder))
    TRY_(files.write_raw("/sys/class/net/bonding_masters", std::string("+") + kBond));
  TRY_(files.write_raw(folder + "mode", network.bond_mode));
  TRY_(files.write_raw(folder + "miimon", "100"));
  int taken = 0;
  for (const auto& mac : network.ports) {
    const auto port = interface_with_mac(files, mac);
    if (!port.ok()) continue;
    TRY_(files.write_raw(folder + "slaves", "+" + *port));
    ++taken;
  }
  if (taken == 0) return fail(Code::not_found, "none of the ports of the bond is present");
  return std::string(kBond);
}

Result<std::string> address_device(const std::string& device, const RamNetwork& network,
                                   const std::function<Status(const std::string&)>& load) {
  std::string top = device;
  // A VLAN's MTU cannot exceed that of the device below it.
  if (network.mtu > 0) TRY_(set_mtu(device, network.mtu));
  if (network.vlan > 0) {
    TRY_(load("8021q"));
    TRY_(switch_up(device));
    TRY(top, make_vlan(device, network.vlan));
  }
  TRY_(configure_ipv4(top, network.cidr));
  if (!network.gateway.empty()) TRY_(add_default_route(network.gateway));
  return top;
}

}  // namespace muster
