#include "lab/giants.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace muster::lab {
namespace {

constexpr uint16_t kExperimental = 0x88b5;  // IEEE 802: local experiments

struct Socket {
  int fd = -1;
  ~Socket() {
    if (fd >= 0) close(fd);
  }
};

}  // namespace

Result<std::string> giant_frame(const std::string& mac) {
  unsigned byte[6] = {};
  char more = 0;
  if (mac.size() != 17 || sscanf(mac.c_str(), "%2x:%2x:%2x:%2x:%2x:%2x%c", &byte[0], &byte[1], &byte[2],
                                 &byte[3], &byte[4], &byte[5], &more) != 6)
    return fail(Code::invalid, "'" + mac + "' is not a MAC address");
  std::string out;
  for (const unsigned b : byte) out += static_cast<char>(b);
  out += std::string("\x02\0\0\0\0\x01", 6);  // a locally administered source address
  out += static_cast<char>(kExperimental >> 8);
  out += static_cast<char>(kExperimental & 0xff);
  out.resize(kGiantBytes, '\0');
  return out;
}

Status send_giants(const std::string& tap, const std::string& mac, int64_t count) {
  TRY(const std::string frame, giant_frame(mac));
  const Socket out{socket(AF_PACKET, SOCK_RAW, 0)};
  sockaddr_ll to{};
  to.sll_family = AF_PACKET;
  to.sll_ifindex = static_cast<int>(if_nametoindex(tap.c_str()));
  if (out.fd < 0 || to.sll_ifindex == 0)
    return fail(Code::failed, fmt::format("cannot send on {}: {}", tap, strerror(errno)));
  for (int64_t i = 0; i < count; ++i)
    if (sendto(out.fd, frame.data(), frame.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to) !=
        static_cast<ssize_t>(frame.size()))
      return fail(Code::failed, fmt::format("{}: frame {} of {}: {}", tap, i + 1, count, strerror(errno)));
  return Ok{};
}

}  // namespace muster::lab
