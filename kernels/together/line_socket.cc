#include "kernels/together/line_socket.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "kernels/common/kernels.h"

namespace muster::together {

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

}  // namespace muster::together
