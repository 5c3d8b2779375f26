// Listening and peer addresses of the HTTP server: addresses and sockets, TCP or Unix. Thread: any; never
// blocks. Internal to the server.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "sys/http/http.h"

namespace muster::http_server {

struct Address {
  sockaddr_storage storage = {};
  socklen_t size = 0;
  sockaddr* any() { return reinterpret_cast<sockaddr*>(&storage); }
};

// Opens a listening socket, which the caller closes; replaces a stale socket file. invalid: not a numeric
// address, or the path is too long; denied, unavailable: an error of the system.
Result<int> listen_on(const HttpServerOptions& options);
// Returns the port that the socket is bound to; 0 for a Unix socket.
uint16_t port_of(int fd);
// Returns the address as text: "10.20.0.11", "fd00::1" or "unix".
std::string remote_of(const Address& address);

}  // namespace muster::http_server
