#include <arpa/inet.h>
#include <fmt/format.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "sys/http/http_target.h"

namespace muster::http_client {
namespace {

Result<uint16_t> port_of(std::string_view text, uint16_t fallback) {
  if (text.empty()) return fallback;
  uint16_t port = 0;
  auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), port);
  if (text[0] != ':' || error != std::errc() || end != text.data() + text.size() || port == 0)
    return fail(Code::invalid, fmt::format("not a port: {}", text));
  return port;
}

Status set_v6(Target& target, std::string host, uint16_t port) {
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&target.address);
  size_t percent = host.find('%');
  if (percent != std::string::npos) {  // a link-local address includes its interface: fe80::1%eth0
    v6->sin6_scope_id = ::if_nametoindex(host.c_str() + percent + 1);
    host.resize(percent);
  }
  if (::inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) != 1)
    return fail(Code::invalid, "not a numeric address: " + host);
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(port);
  target.size = sizeof *v6;
  return Ok{};
}

}  // namespace

Result<Target> parse_base(std::string_view base) {
  Target target;
  if (base.substr(0, 5) == "unix:") {
    auto* local = reinterpret_cast<sockaddr_un*>(&target.address);
    std::string path(base.substr(5));
    if (path.empty() || path.size() >= sizeof local->sun_path)
      return fail(Code::invalid, "not a socket path: " + path);
    local->sun_family = AF_UNIX;
    memcpy(local->sun_path, path.c_str(), path.size() + 1);
    target.size = sizeof *local;
    target.host = "localhost";
    return target;
  }
  target.tls = base.substr(0, 8) == "https://";
  if (!target.tls && base.substr(0, 7) != "http://")
    return fail(Code::invalid, fmt::format("not an http, https or unix address: {}", base));
  base.remove_prefix(target.tls ? 8 : 7);
  if (!base.empty() && base.back() == '/') base.remove_suffix(1);
  target.host = std::string(base);
  bool v6 = !base.empty() && base[0] == '[';
  size_t end = v6 ? base.find(']') : std::min(base.find(':'), base.size());
  if (end == std::string_view::npos) return fail(Code::invalid, fmt::format("not an address: {}", base));
  std::string host(v6 ? base.substr(1, end - 1) : base.substr(0, end));
  TRY(uint16_t port, port_of(base.substr(v6 ? end + 1 : end), target.tls ? 443 : 80));
  if (v6) {
    TRY_(set_v6(target, host, port));
    return target;
  }
  auto* v4 = reinterpret_cast<sockaddr_in*>(&target.address);
  if (::inet_pton(AF_INET, host.c_str(), &v4->sin_addr) != 1)
    return fail(Code::invalid, "not a numeric address: " + host);
  v4->sin_family = AF_INET;
  v4->sin_port = htons(port);
  target.size = sizeof *v4;
  return target;
}

}  // namespace muster::http_client
