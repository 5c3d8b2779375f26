#include "agent/steps/tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>

namespace muster::steps {
namespace {

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

bool wait_for(int fd, short events, std::chrono::steady_clock::time_point until) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    if (left <= 0) return false;
    pollfd p = {fd, events, 0};
    const int ready = poll(&p, 1, static_cast<int>(left));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

}  // namespace

std::string_view to_string(TcpState state) {
  if (state == TcpState::open) return "open";
  if (state == TcpState::refused) return "refused";
  return state == TcpState::filtered ? "filtered" : "unreachable";
}

Result<TcpAnswer> tcp_probe(const std::string& address, uint16_t port, DurationMs deadline, bool banner) {
  sockaddr_storage storage = {};
  socklen_t size = 0;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&storage);
  if (inet_pton(AF_INET, address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET, v4->sin_port = htons(port), size = sizeof *v4;
  } else if (inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6, v6->sin6_port = htons(port), size = sizeof *v6;
  } else {
    return fail(Code::invalid, "'" + address + "' is not a numeric address");
  }
  const Socket s(socket(storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (s.get() < 0) return fail(Code::unavailable, std::string("cannot create a socket: ") + strerror(errno));
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(deadline);
  int error = connect(s.get(), reinterpret_cast<sockaddr*>(&storage), size) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    if (!wait_for(s.get(), POLLOUT, until)) return TcpAnswer{TcpState::filtered, ""};
    socklen_t length = sizeof error;
    if (getsockopt(s.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  } else if (error != 0 && error != ECONNREFUSED) {
    // An immediate error has its cause on this node: without a route, every other node would appear closed.
    return TcpAnswer{TcpState::unreachable, ""};
  }
  if (error == ECONNREFUSED) return TcpAnswer{TcpState::refused, ""};
  if (error != 0) return TcpAnswer{TcpState::filtered, ""};
  TcpAnswer answer{TcpState::open, ""};
  if (!banner || !wait_for(s.get(), POLLIN, until)) return answer;
  std::array<char, 256> buffer;
  const ssize_t n = recv(s.get(), buffer.data(), buffer.size(), 0);
  if (n > 0) answer.banner.assign(buffer.data(), static_cast<size_t>(n));
  return answer;
}

}  // namespace muster::steps
