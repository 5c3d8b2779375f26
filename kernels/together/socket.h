// Sockets of a group: an owning descriptor type, and non-blocking TCP by numeric address.
//
// Numeric addresses only (IPv4, IPv6): a static program has no name service. One thread at a time per object.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"

namespace muster::together {

// Owns a descriptor and closes it; -1: none.
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
// Listens at this address; port 0: any free port. `unavailable` if another process listens there: two runs
// must not share a port, since each could receive connections meant for the other.
Result<Listening> listen_at(const std::string& address, uint16_t port);

// Starts to connect from the local address `from`, which selects the network. Connected once the socket is
// writable and connect_error() is 0. `unavailable` if it failed immediately.
Result<Socket> start_connect(const std::string& from, const std::string& to, uint16_t port);
int connect_error(const Socket& socket);

// Accepts one connection; an empty Socket if none is pending.
Socket accept_one(const Socket& listening);

// Disables delays for small messages, and detects a dead machine after about 20 s without traffic. Unsent
// data does not count as a failure: a member that is computing may be slow to read.
void tune(const Socket& socket);

// A connection that carries lines of text: each ends with a line feed and has a bounded length. Reading never
// blocks; writing blocks up to a given time. Owned by a group's leader or one of its servers.
class LineSocket {
 public:
  LineSocket(Socket socket, size_t longest) : socket_(std::move(socket)), longest_(longest) {}

  int fd() const { return socket_.fd(); }
  // Sends the whole line within this many seconds; unavailable: the other end has closed or does not read.
  Status send(const std::string& line, double seconds);
  // Reads what has arrived. Returns false if no more will come: the other end has closed, or sent a line that
  // is too long.
  bool read();
  // Returns the next complete line, without the line feed; nothing if there is none yet.
  std::optional<std::string> take();
  // Returns the first byte that has arrived and was not taken; '{' (how each line begins) if there is none.
  char first() const { return text_.empty() ? '{' : text_.front(); }
  // Returns the other end's numeric address; "" if it has disconnected.
  std::string peer() const;

 private:
  Socket socket_;
  size_t longest_;
  std::string text_ = {};
};

}  // namespace muster::together
