#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "sys/http/http_listener.h"

namespace muster::http_server {
namespace {

Result<Address> address_of(const HttpServerOptions& options) {
  Address address;
  if (!options.unix_path.empty()) {
    auto* local = reinterpret_cast<sockaddr_un*>(&address.storage);
    local->sun_family = AF_UNIX;
    if (options.unix_path.size() >= sizeof local->sun_path)
      return fail(Code::invalid, "the socket's path is too long: " + options.unix_path);
    std::memcpy(local->sun_path, options.unix_path.c_str(), options.unix_path.size() + 1);
    address.size = sizeof *local;
    return address;
  }
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (::inet_pton(AF_INET, options.address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(options.port);
    address.size = sizeof *v4;
  } else if (::inet_pton(AF_INET6, options.address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(options.port);
    address.size = sizeof *v6;
  } else {
    return fail(Code::invalid, "not a numeric address: " + options.address);
  }
  return address;
}

// A socket file without a listener is left over from a crash, and prevents listening.
void remove_stale(Address& address, const std::string& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode)) return;
  int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return;
  if (::connect(probe, address.any(), address.size) != 0 && errno == ECONNREFUSED) ::unlink(path.c_str());
  ::close(probe);
}

}  // namespace

Result<int> listen_on(const HttpServerOptions& options) {
  TRY(Address address, address_of(options));
  bool local = !options.unix_path.empty();
  std::string where = local ? options.unix_path : fmt::format("{} port {}", options.address, options.port);
  if (local) remove_stale(address, options.unix_path);
  int fd = ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return fail(Code::unavailable, fmt::format("listening on {}: {}", where, strerror(errno)));
  int on = 1;
  if (!local) ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (local) ::fchmod(fd, 0660);  // at no moment does the file have wider permissions
  bool ok = ::bind(fd, address.any(), address.size) == 0 &&
            (!local || ::chmod(options.unix_path.c_str(), 0660) == 0) && ::listen(fd, 4096) == 0;
  if (ok) return fd;
  Code code = errno == EACCES || errno == EPERM ? Code::denied : Code::unavailable;
  Error error = fail(code, fmt::format("listening on {}: {}", where, strerror(errno)));
  ::close(fd);
  return error;
}

uint16_t port_of(int fd) {
  Address address;
  address.size = sizeof address.storage;
  if (::getsockname(fd, address.any(), &address.size) != 0) return 0;
  if (address.storage.ss_family == AF_INET)
    return ntohs(reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port);
  if (address.storage.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_port);
  return 0;
}

std::string remote_of(const Address& address) {
  char text[INET6_ADDRSTRLEN] = "unix";
  if (address.storage.ss_family == AF_INET)
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_addr, text,
                sizeof text);
  if (address.storage.ss_family == AF_INET6)
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr, text,
                sizeof text);
  std::string_view mapped = "::ffff:";
  std::string remote = text;
  return remote.find('.') != std::string::npos && remote.starts_with(mapped) ? remote.substr(mapped.size())
                                                                             : remote;
}

}  // namespace muster::http_server
