#include "controller/doctor/service/dhcp_probe.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/digest.h"
#include "controller/boot/dnsmasq.h"
#include "sys/clock.h"

namespace muster::doctor {
namespace {

class PacketSocket {
 public:
  explicit PacketSocket(std::string interface)
      : interface_(std::move(interface)),
        fd_(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_IP))) {}
  ~PacketSocket() {
    if (fd_ >= 0) ::close(fd_);
  }
  PacketSocket(const PacketSocket&) = delete;
  PacketSocket& operator=(const PacketSocket&) = delete;

  Result<MacBytes> open() {
    if (fd_ < 0 && (errno == EPERM || errno == EACCES))
      return fail(Code::denied, "looking for DHCP servers needs CAP_NET_RAW: run musterd as root");
    port_.sll_family = AF_PACKET;
    port_.sll_protocol = htons(ETH_P_IP);
    port_.sll_ifindex = static_cast<int>(::if_nametoindex(interface_.c_str()));
    if (fd_ < 0 || ::bind(fd_, reinterpret_cast<const sockaddr*>(&port_), sizeof port_) != 0) return broken();
    sockaddr_ll own = {};
    socklen_t size = sizeof own;
    if (::getsockname(fd_, reinterpret_cast<sockaddr*>(&own), &size) != 0) return broken();
    MacBytes mac = {};
    if (own.sll_halen != mac.size())
      return fail(Code::invalid, interface_ + " is no Ethernet port: DHCP servers are not looked for there");
    std::copy_n(own.sll_addr, mac.size(), mac.begin());
    return mac;
  }
  Status broadcast(const std::string& packet) {
    port_.sll_halen = 6;
    std::fill_n(port_.sll_addr, 6, uint8_t{0xff});
    if (::sendto(fd_, packet.data(), packet.size(), 0, reinterpret_cast<const sockaddr*>(&port_),
                 sizeof port_) < 0)
      return broken();
    return Ok{};
  }
  // "" if none came in time.
  std::string receive(DurationMs within) {
    pollfd ready = {fd_, POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(within)) <= 0) return "";
    std::array<char, 2048> packet;
    const ssize_t size = ::recv(fd_, packet.data(), packet.size(), MSG_DONTWAIT);
    return size > 0 ? std::string(packet.data(), static_cast<size_t>(size)) : "";
  }

 private:
  Error broken() const {
    return fail(Code::failed, fmt::format("looking for DHCP servers on {}: {}", interface_, strerror(errno)));
  }

  const std::string interface_;
  const int fd_;
  sockaddr_ll port_ = {};
};

}  // namespace

Result<DhcpSeen> find_dhcp_servers(const std::string& address, DurationMs listen) {
  TRY(const auto own, interfaces_by_address());
  TRY(const std::string interface, interface_of(address));
  DhcpSeen out{.interface = interface};
  for (const auto& [one, name] : own) out.own.insert(one);
  PacketSocket socket(interface);
  TRY(const MacBytes mac, socket.open());
  const auto transaction = static_cast<uint32_t>(std::strtoul(random_hex(4).c_str(), nullptr, 16));
  const std::string request = dhcp_discover(mac, transaction);
  // Twice, since each may be lost.
  const SteadyMs begin = steady_now(), again = begin + listen / 3, end = begin + listen;
  TRY_(socket.broadcast(request));
  bool repeated = false;
  for (SteadyMs now = begin; now < end; now = steady_now()) {
    if (!repeated && now >= again) {
      repeated = true;
      TRY_(socket.broadcast(request));
    }
    const auto offer = read_dhcp_offer(socket.receive((repeated ? end : again) - now), transaction);
    if (offer && std::find(out.offers.begin(), out.offers.end(), *offer) == out.offers.end())
      out.offers.push_back(*offer);
  }
  return out;
}

}  // namespace muster::doctor
