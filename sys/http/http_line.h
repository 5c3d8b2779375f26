// A connected socket, plain or TLS: calls block, every wait is bounded by a deadline. Thread safety: one
// thread at a time. Never retries, never resolves a name. Internal to the client.
#pragma once

#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "sys/http/http.h"
#include "sys/openssl.h"

namespace muster::http_client {

using ContextPtr = std::unique_ptr<SSL_CTX, tls::Freer<SSL_CTX_free>>;
using SslPtr = std::unique_ptr<SSL, tls::Freer<SSL_free>>;

// invalid: a CA, certificate or key cannot be read.
Result<ContextPtr> make_context(const HttpClientOptions& options);

struct Target {
  bool tls = false;
  sockaddr_storage address = {};
  socklen_t size = 0;
  std::string host;       // for the Host header
  std::string authority;  // "hooks.example:443", what a proxy connects to
};

// "http://10.0.0.1:80", "https://[fd00::1]:7443", "unix:/run/muster/musterd.sock"; invalid: anything else.
Result<Target> parse_base(std::string_view base);
// Of a base that a proxy connects to, which may have a name: the address is the proxy's.
Result<Target> parse_proxied(std::string_view base, const std::string& proxy);

// A point in time after which no wait of a call continues.
class Deadline {
 public:
  explicit Deadline(DurationMs ms);
  int left() const;  // milliseconds, as poll() takes them
  Deadline sooner(DurationMs ms) const;

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point at_;
};

// `refused`: the server does not accept our certificate.
enum class Io { done, closed, late, refused };

class Line {
 public:
  Line() = default;
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line() { close(); }

  bool open() const { return fd_ >= 0; }
  void close();

  // `reserved_port`: as in HttpClientOptions. unavailable: the connection was not established.
  Status connect(const Target& target, const Deadline& deadline, bool reserved_port = false);
  // Has the proxy at the other end connect to `authority`. unavailable: it does not.
  Status tunnel(const std::string& authority, const Deadline& deadline);
  // denied: one side rejects the other's certificate. `seen`: the fingerprint of the peer's certificate.
  Status start_tls(SSL_CTX* context, const Target& target, const HttpClientOptions& options,
                   const Deadline& deadline, std::string& seen);
  // False if there is data to read while the connection is idle: the server has closed it.
  bool idle_and_alive();
  // `any_sent` is set if at least one byte may have reached the peer.
  Io write_all(std::string_view data, const Deadline& deadline, bool& any_sent);
  // `size` is 0 only at the end of the stream.
  Io read_some(char* into, size_t room, const Deadline& deadline, size_t& size);

  // The last error of the system or OpenSSL, for messages.
  const std::string& reason() const { return reason_; }

 private:
  struct Progress {
    Io io = Io::done;
    size_t size = 0;
  };

  Error hang_up(Code code, std::string message);
  int attempt(const Target& target, const Deadline& deadline, uint16_t source_port);
  bool wait(short events, const Deadline& deadline);
  template <typename Step>
  Progress drive_plain(short events, const Deadline& deadline, Step step);
  template <typename Step>
  Progress drive(const Deadline& deadline, Step step);

  int fd_ = -1;
  SslPtr ssl_;
  std::string reason_;
};

}  // namespace muster::http_client
