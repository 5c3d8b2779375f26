#include "kernels/together/socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "kernels/common/kernels.h"

namespace muster::together {
namespace {

constexpr int kBacklog = 1024;  // a whole cluster comes at once
constexpr int kProbeSeconds = 5, kProbes = 3;

struct Address {
  sockaddr_storage bytes = {};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
};

Result<Address> parse(const std::string& ip, uint16_t port) {
  Address out;
  auto& v4 = reinterpret_cast<sockaddr_in&>(out.bytes);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(out.bytes);
  if (::inet_pton(AF_INET, ip.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    out.size = sizeof v4;
    return out;
  }
  if (::inet_pton(AF_INET6, ip.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    out.size = sizeof v6;
    return out;
  }
  return fail(Code::invalid, fmt::format("'{}' is not a numeric address", ip));
}

Socket open_socket(const Address& address) {
  return Socket(::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

}  // namespace

using kernels::seconds_now;

Status LineSocket::send(const std::string& line, double seconds) {
  const double until = seconds_now() + seconds;
  for (size_t sent = 0; sent < line.size();) {
    const ssize_t n = ::send(fd(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      sent += static_cast<size_t>(n);
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return fail(Code::unavailable, std::strerror(errno));
    pollfd ready{fd(), POLLOUT, 0};
    ::poll(&ready, 1, 100);
    if (seconds_now() >= until) return fail(Code::unavailable, "the other end has stopped reading");
  }
  return Ok{};
}

bool LineSocket::read() {
  char buffer[65536];
  while (true) {
    const ssize_t n = ::recv(fd(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    if (n == 0) return false;
    text_.append(buffer, static_cast<size_t>(n));
    if (text_.size() > longest_) return false;
  }
}

std::optional<std::string> LineSocket::take() {
  const size_t end = text_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = text_.substr(0, end);
  text_.erase(0, end + 1);
  return line;
}

std::string LineSocket::peer() const {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  char text[NI_MAXHOST] = {};
  if (::getpeername(fd(), reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, text, sizeof text, nullptr, 0,
                    NI_NUMERICHOST) != 0)
    return "";
  return text;
}

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

Result<Listening> listen_at(const std::string& address, uint16_t port) {
  TRY(Address at, parse(address, port));
  Listening out{open_socket(at), port};
  const int on = 1;
  // Connections of the previous run may still be in TIME_WAIT.
  ::setsockopt(out.socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (out.socket.fd() < 0 || ::bind(out.socket.fd(), at.get(), at.size) != 0 ||
      ::listen(out.socket.fd(), kBacklog) != 0)
    return fail(Code::unavailable,
                fmt::format("listening on {} port {}: {}", address, port, std::strerror(errno)));
  ::getsockname(out.socket.fd(), reinterpret_cast<sockaddr*>(&at.bytes), &at.size);
  out.port = ntohs(at.bytes.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(at.bytes).sin6_port
                                                  : reinterpret_cast<sockaddr_in&>(at.bytes).sin_port);
  return out;
}

Result<Socket> start_connect(const std::string& from, const std::string& to, uint16_t port) {
  TRY(const Address here, parse(from, 0));
  TRY(const Address there, parse(to, port));
  Socket out = open_socket(there);
  const bool bound = out.fd() >= 0 && ::bind(out.fd(), here.get(), here.size) == 0;
  if (!bound || (::connect(out.fd(), there.get(), there.size) != 0 && errno != EINPROGRESS))
    return fail(Code::unavailable,
                fmt::format("connecting to {} port {}: {}", to, port, std::strerror(errno)));
  return out;
}

int connect_error(const Socket& socket) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

Socket accept_one(const Socket& listening) {
  return Socket(::accept4(listening.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

void tune(const Socket& socket) {
  const int on = 1;
  ::setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  for (const int option : {TCP_KEEPIDLE, TCP_KEEPINTVL})
    ::setsockopt(socket.fd(), IPPROTO_TCP, option, &kProbeSeconds, sizeof kProbeSeconds);
  ::setsockopt(socket.fd(), IPPROTO_TCP, TCP_KEEPCNT, &kProbes, sizeof kProbes);
}

}  // namespace muster::together
