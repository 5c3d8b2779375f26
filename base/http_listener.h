// Listening and peer addresses of the HTTP server: addresses and sockets, TCP or Unix. Thread: any; blocks
// for nothing. Internal to the server.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "base/http.h"
#include "base/result.h"

namespace muster::http_server {

struct Address {
  sockaddr_storage storage = {};
  socklen_t size = 0;
  sockaddr* any() { return reinterpret_cast<sockaddr*>(&storage); }
};

// A listening socket, which the caller closes. invalid: no numeric address, or a path that is too long;
// denied, unavailable: the system refuses. A stale socket file is replaced.
Result<int> listen_on(const HttpServerOptions& options);
// The port it got; 0 for a Unix socket.
uint16_t port_of(int fd);
// "10.20.0.11", "fd00::1" or "unix".
std::string remote_of(const Address& address);

}  // namespace muster::http_server
