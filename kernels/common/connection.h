// TCP between two nodes, for kernels that measure with a partner node: framed messages, a deadline for every
// operation on a connection, and a server that stops at its own deadline. Numeric addresses only: a static
// program has no name service, and a test must not depend on one. Thread safety: a Connection belongs to one
// thread; a Listener runs its handler in one thread per connection and joins them all.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster::kernels {

constexpr size_t kLargestFrame = 256 << 10;

struct Header {
  uint32_t magic, type;
  uint64_t value;   // meaning depends on the kernel: a ping's number, an offset, milliseconds
  uint32_t length;  // bytes that follow
  uint32_t reserved;
};
static_assert(sizeof(Header) == 24);

// A non-blocking TCP connection under a deadline (seconds_now()). Closes its socket.
class Connection {
 public:
  Connection(int fd, double deadline);
  ~Connection();
  void until(double deadline) { deadline_ = deadline; }
  // Enables detection of a peer whose machine died: receive() then fails within about 20 s, even when nothing
  // is being sent. Not for peers that may be too busy to read incoming data for that long.
  void notice_death();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Status send(uint32_t type, uint64_t value, const char* bytes = nullptr, size_t length = 0);
  // Receives the next frame; its body is in body() until the next call.
  Result<Header> receive();
  Result<Header> receive(uint32_t wanted);
  char* body() { return body_.data(); }
  // When the header of the latest frame arrived, its body possibly later (seconds_now(); 0: no frame yet).
  double arrived() const { return arrived_; }
  uint64_t retransmits() const;

 private:
  Status wait(short events);
  Status write_all(const char* bytes, size_t length);
  Status read_all(char* out, size_t length);

  int fd_;
  double deadline_, arrived_ = 0;
  std::vector<char> body_ = {};
};

// The server may still be starting: connect_until() retries for `seconds` while the connection is refused.
struct Endpoint {
  std::string to = {};
  uint16_t port = 0;
  std::string bind = {};  // local address, to choose the path; empty: the system's choice
  double seconds = 5;
};
Result<int> connect_until(const Endpoint& endpoint);

struct ServeRule {
  double until = 0;       // seconds_now(); no connection is accepted after it
  int sessions = 0;       // ends after this many connections; 0: only at the deadline
  std::string from = {};  // when set: connections from any other address are closed unanswered
};

// Listens from open() on, so a later client never races with it. Owns its socket, which is non-blocking.
class Listener {
 public:
  // `bind` is a numeric address; port 0: any free one.
  static Result<Listener> open(const std::string& bind, uint16_t port);
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&& other) noexcept;
  ~Listener();
  int fd() const { return fd_; }  // -1: closed
  uint16_t port() const { return port_; }
  // Accepts connections as `rule` permits; the handler owns the socket it is given. Closes the listening
  // socket once no more are accepted, even while handlers run, so that the next server can use the port.
  void serve_until(const ServeRule& rule,
                   const std::function<void(int fd, const std::string& from)>& handler);

 private:
  Listener(int fd, uint16_t port) : fd_(fd), port_(port) {}
  int fd_;
  uint16_t port_;
};

}  // namespace muster::kernels
