// Sockets of a group: an owner for a descriptor, and TCP by numeric address without waiting.
//
// Numeric addresses only (IPv4 and IPv6): a static program has no name service. Thread: any, one per object.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/result.h"

namespace muster::together {

// Closes it. -1: none.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket();
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

struct Listening {
  Socket socket = {};
  uint16_t port = 0;
};
// Port 0: any free one. `unavailable` when another process listens there: two runs must not share a port, or
// each would be handed connections of the other's.
Result<Listening> listen_at(const std::string& address, uint16_t port);

// From this address of ours, which chooses the network. Connected when the socket becomes writable and
// connect_error() is 0. `unavailable` when it failed at once.
Result<Socket> start_connect(const std::string& from, const std::string& to, uint16_t port);
int connect_error(const Socket& socket);

// None when no connection is waiting.
Socket accept_one(const Socket& listening);

// No delay for small messages, and a machine that died is noticed after some 20 s without traffic. What waits
// to be sent to it is not counted: a member that computes may be slow to take it.
void tune(const Socket& socket);

}  // namespace muster::together
