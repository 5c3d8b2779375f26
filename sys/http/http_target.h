// The target of an HTTP client: the base address of its options, parsed. Numeric addresses and Unix sockets;
// no name is ever resolved. Thread safety: plain value types. Internal to the client.
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::http_client {

struct Target {
  bool tls = false;
  sockaddr_storage address = {};
  socklen_t size = 0;
  std::string host;  // for the Host header
};

// "http://10.0.0.1:80", "https://[fd00::1]:7443", "unix:/run/muster/musterd.sock"; invalid: anything else.
Result<Target> parse_base(std::string_view base);

}  // namespace muster::http_client
