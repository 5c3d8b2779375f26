// TCP between two nodes for kernels that measure with a partner: frames on one connection, each under the
// connection's deadline, and a server that ends by itself.
//
// Numeric addresses only: a static program has no name service, and a test must not depend on one.
// Thread: a Connection belongs to one thread; a Listener runs its handler in a thread per connection and
// joins them all.
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
  // Replaces the deadline.
  void until(double deadline) { deadline_ = deadline; }
  // A peer whose machine died stops responding. With this it is noticed within about 20 s, even while only
  // waiting for it. Not for peers that may be too busy to read what they are sent.
  void notice_death();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Status send(uint32_t type, uint64_t value, const char* bytes = nullptr, size_t length = 0);
  // The next frame; its body is in body() until the next call.
  Result<Header> receive();
  Result<Header> receive(uint32_t wanted);
  char* body() { return body_.data(); }
  // When the header of the newest frame was there, and its body perhaps not yet (seconds_now(); 0: none).
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

// A socket connected to a server that may still be starting: retried for this many seconds while it refuses
// connections.
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

// Listens from open() on, so a client started afterwards never races with it. Owns its socket, which is
// non-blocking.
class Listener {
 public:
  // `bind` is a numeric address; port 0: any free one.
  static Result<Listener> open(const std::string& bind, uint16_t port);
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&& other) noexcept;
  ~Listener();
  int fd() const { return fd_; }  // -1: closed
  uint16_t port() const { return port_; }
  // The handler owns the socket it is given. Closes as soon as no more connections are accepted, while
  // handlers still run: the next server on this port gets the connections then.
  void serve_until(const ServeRule& rule,
                   const std::function<void(int fd, const std::string& from)>& handler);

 private:
  Listener(int fd, uint16_t port) : fd_(fd), port_(port) {}
  int fd_;
  uint16_t port_;
};

}  // namespace muster::kernels
