#include "kernels/common/connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <thread>
#include <utility>

#include "kernels/common/kernels.h"

namespace muster::kernels {
namespace {

constexpr uint32_t kMagic = 0x4d55534c;
constexpr int kProbeSeconds = 5, kDeadMs = 15000;

Error socket_error(std::string_view what) {
  return fail(Code::unavailable, fmt::format("{}: {}", what, std::strerror(errno)));
}

Result<sockaddr_storage> parse_address(const std::string& ip, uint16_t port, socklen_t& size) {
  sockaddr_storage out = {};
  auto& v4 = reinterpret_cast<sockaddr_in&>(out);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(out);
  if (::inet_pton(AF_INET, ip.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    size = sizeof(sockaddr_in);
    return out;
  }
  if (::inet_pton(AF_INET6, ip.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    size = sizeof(sockaddr_in6);
    return out;
  }
  return fail(Code::invalid, fmt::format("'{}' is not a numeric address", ip));
}

std::string address_text(const sockaddr_storage& address) {
  char host[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET6)
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, host, sizeof host);
  else
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, host, sizeof host);
  return host;
}

}  // namespace

Connection::Connection(int fd, double deadline) : fd_(fd), deadline_(deadline) {
  const int on = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Connection::~Connection() { ::close(fd_); }

void Connection::notice_death() {
  const int on = 1;
  ::setsockopt(fd_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  for (const int option : {TCP_KEEPIDLE, TCP_KEEPINTVL})
    ::setsockopt(fd_, IPPROTO_TCP, option, &kProbeSeconds, sizeof kProbeSeconds);
  // TCP_USER_TIMEOUT also applies to unanswered keepalive probes, instead of their count.
  ::setsockopt(fd_, IPPROTO_TCP, TCP_USER_TIMEOUT, &kDeadMs, sizeof kDeadMs);
}

Status Connection::send(uint32_t type, uint64_t value, const char* bytes, size_t length) {
  const Header header{kMagic, type, value, static_cast<uint32_t>(length), 0};
  TRY_(write_all(reinterpret_cast<const char*>(&header), sizeof header));
  return write_all(bytes, length);
}

Result<Header> Connection::receive() {
  Header header = {};
  TRY_(read_all(reinterpret_cast<char*>(&header), sizeof header));
  if (header.magic != kMagic || header.length > kLargestFrame)
    return fail(Code::invalid, "the peer does not speak this protocol");
  arrived_ = seconds_now();
  body_.resize(std::max<size_t>(body_.size(), header.length));
  TRY_(read_all(body_.data(), header.length));
  return header;
}

Result<Header> Connection::receive(uint32_t wanted) {
  TRY(const Header header, receive());
  if (header.type != wanted)
    return fail(Code::invalid, fmt::format("expected a frame of type {}, got type {}", wanted, header.type));
  return header;
}

uint64_t Connection::retransmits() const {
  tcp_info info = {};
  socklen_t size = sizeof info;
  return ::getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_total_retrans : 0;
}

Status Connection::wait(short events) {
  const double left = deadline_ - seconds_now();
  if (left <= 0) return fail(Code::timeout, "the connection's deadline has passed");
  pollfd p{fd_, events, 0};
  ::poll(&p, 1, static_cast<int>(left * 1000) + 1);
  return Ok{};
}

Status Connection::write_all(const char* bytes, size_t length) {
  while (length > 0) {
    const ssize_t n = ::send(fd_, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      bytes += n;
      length -= static_cast<size_t>(n);
    } else if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
      TRY_(wait(POLLOUT));
    } else {
      return socket_error("sending");
    }
  }
  return Ok{};
}

Status Connection::read_all(char* bytes, size_t length) {
  while (length > 0) {
    const ssize_t n = ::recv(fd_, bytes, length, MSG_DONTWAIT);
    if (n > 0) {
      bytes += n;
      length -= static_cast<size_t>(n);
    } else if (n == 0) {
      return fail(Code::unavailable, "the peer closed the connection");
    } else if (errno == EAGAIN || errno == EINTR) {
      TRY_(wait(POLLIN));
    } else {
      return socket_error("receiving");
    }
  }
  return Ok{};
}

Result<Listener> Listener::open(const std::string& bind, uint16_t port) {
  socklen_t size = 0;
  TRY(sockaddr_storage address, parse_address(bind, port, size));
  const int fd = ::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return socket_error("opening a socket");
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // A second acceptance attempt must not fail because the first one's server still runs to its deadline.
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) != 0 || ::listen(fd, 64) != 0) {
    const int error = errno;
    ::close(fd);
    return fail(Code::unavailable,
                fmt::format("listening on {} port {}: {}", bind, port, std::strerror(error)));
  }
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  port = ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
  return Listener(fd, port);
}

Listener::Listener(Listener&& other) noexcept : fd_(std::exchange(other.fd_, -1)), port_(other.port_) {}

Listener& Listener::operator=(Listener&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(port_, other.port_);
  return *this;
}

Listener::~Listener() {
  if (fd_ >= 0) ::close(fd_);
}

Result<int> connect_until(const Endpoint& endpoint) {
  socklen_t size = 0, local_size = 0;
  TRY(const sockaddr_storage to, parse_address(endpoint.to, endpoint.port, size));
  sockaddr_storage local = {};
  if (!endpoint.bind.empty()) {
    TRY(local, parse_address(endpoint.bind, 0, local_size));
  }
  const double until = seconds_now() + endpoint.seconds;
  while (true) {
    const int fd = ::socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return socket_error("opening a socket");
    bool bound = local_size == 0 || ::bind(fd, reinterpret_cast<const sockaddr*>(&local), local_size) == 0;
    int error = bound ? 0 : errno;
    if (bound && ::connect(fd, reinterpret_cast<const sockaddr*>(&to), size) != 0) error = errno;
    if (error == EINPROGRESS) {
      pollfd p{fd, POLLOUT, 0};
      const int ready = ::poll(&p, 1, std::max(1, static_cast<int>((until - seconds_now()) * 1000)));
      socklen_t length = sizeof error;
      if (ready == 1)
        ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
      else
        error = ETIMEDOUT;
    }
    if (error == 0) return fd;
    ::close(fd);
    if (error != ECONNREFUSED || seconds_now() >= until)
      return fail(Code::unavailable, fmt::format("connecting to {} port {}: {}", endpoint.to, endpoint.port,
                                                 std::strerror(error)));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the peer's server may still be starting
  }
}

void Listener::serve_until(const ServeRule& rule,
                           const std::function<void(int fd, const std::string& from)>& handler) {
  std::vector<std::thread> threads;
  int accepted = 0;
  while (rule.sessions == 0 || accepted < rule.sessions) {
    const double left = rule.until - seconds_now();
    if (left <= 0) break;
    pollfd p{fd_, POLLIN, 0};
    if (::poll(&p, 1, static_cast<int>(left * 1000) + 1) <= 0) continue;
    sockaddr_storage peer = {};
    socklen_t size = sizeof peer;
    const int fd = ::accept4(fd_, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) continue;
    const std::string from = address_text(peer);
    if (!rule.from.empty() && from != rule.from) {
      ::close(fd);
      continue;
    }
    ++accepted;
    threads.emplace_back([&handler, fd, from] { handler(fd, from); });
  }
  ::close(std::exchange(fd_, -1));
  for (auto& thread : threads) thread.join();
}

}  // namespace muster::kernels
