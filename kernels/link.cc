// TCP between two nodes: round trip time, then verified data in one direction, then in the other.
//
// How to run:  muster-accept link-serve --bind 10.20.0.12 --port 7490 --seconds 60 [--from 10.20.0.11] [--sessions 1]
//              muster-accept link --to 10.20.0.12 --port 7490 --seconds 1 [--bind 10.20.0.11]
// Reference:   both ends make the same pseudo-random pattern. Byte p of a direction's stream is pattern[p mod 1048573]: the
//              period is prime, so a block that is lost, repeated or moved by any multiple of a page, MTU or segment shows, as
//              does any flipped bit that the 16-bit TCP checksum let through.
// Structure:   one connection, frames of at most 256 KiB. The receiver times from the first byte to the end mark, so nothing
//              that still sits in a buffer is counted.
// Expected:    one stream: ~94 % of a 10 Gb/s link with MTU 1500, 30-50 Gb/s on faster ones (then it is the core that is
//              measured; rails are measured by RDMA tests). Emulated guests: about 10 MB/s.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <thread>

#include "kernels/kernels.h"

namespace muster::kernels {
namespace {

constexpr size_t kPeriod = 1048573;  // prime
constexpr size_t kChunk = 256 << 10;
constexpr uint32_t kMagic = 0x4d55534c;
constexpr double kGrace = 3;  // a session may run on for so long after the server's deadline

enum Type : uint32_t { ping = 1, pong, data, end, result, go, bye };

struct Header {
  uint32_t magic, type;
  uint64_t value;   // ping number, stream offset, or milliseconds
  uint32_t length;  // bytes that follow
  uint32_t reserved;
};
static_assert(sizeof(Header) == 24);

const std::vector<char>& pattern() {
  static const std::vector<char> bytes = [] {
    std::vector<char> out(kPeriod + kChunk);
    SplitMix random(0x6d7573746572);
    fill_random(random, out.data(), kPeriod);
    std::copy_n(out.begin(), kChunk, out.begin() + kPeriod);
    return out;
  }();
  return bytes;
}

Error socket_error(std::string_view what) {
  return fail(Code::unavailable, fmt::format("{}: {}", what, std::strerror(errno)));
}

// A non-blocking TCP connection under one deadline.
class Connection {
 public:
  Connection(int fd, double deadline) : fd_(fd), deadline_(deadline) {
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~Connection() { ::close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Status send(Type type, uint64_t value, const char* bytes = nullptr, size_t length = 0) {
    const Header header{kMagic, type, value, static_cast<uint32_t>(length), 0};
    TRY_(write_all(reinterpret_cast<const char*>(&header), sizeof header));
    return write_all(bytes, length);
  }
  // The next frame; its body is in body() until the next call.
  Result<Header> receive() {
    Header header = {};
    TRY_(read_all(reinterpret_cast<char*>(&header), sizeof header));
    if (header.magic != kMagic || header.length > kChunk)
      return fail(Code::invalid, "the peer does not speak this protocol");
    body_.resize(std::max<size_t>(body_.size(), header.length));
    TRY_(read_all(body_.data(), header.length));
    return header;
  }
  Result<Header> receive(Type wanted) {
    TRY(const Header header, receive());
    if (header.type != wanted)
      return fail(Code::invalid, fmt::format("expected frame {}, got {}", int(wanted), header.type));
    return header;
  }
  char* body() { return body_.data(); }
  uint64_t retransmits() const {
    tcp_info info = {};
    socklen_t size = sizeof info;
    return ::getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_total_retrans : 0;
  }

 private:
  Status wait(short events) {
    const double left = deadline_ - seconds_now();
    if (left <= 0) return fail(Code::timeout, "the connection's time is over");
    pollfd p{fd_, events, 0};
    ::poll(&p, 1, static_cast<int>(left * 1000) + 1);
    return Ok{};
  }
  Status write_all(const char* bytes, size_t length) {
    while (length > 0) {
      const ssize_t n = ::send(fd_, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n > 0) {
        bytes += n;
        length -= static_cast<size_t>(n);
      } else if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        TRY_(wait(POLLOUT));
      } else {
        return socket_error("sending");
      }
    }
    return Ok{};
  }
  Status read_all(char* bytes, size_t length) {
    while (length > 0) {
      const ssize_t n = ::recv(fd_, bytes, length, MSG_DONTWAIT);
      if (n > 0) {
        bytes += n;
        length -= static_cast<size_t>(n);
      } else if (n == 0) {
        return fail(Code::unavailable, "the peer closed the connection");
      } else if (errno == EAGAIN || errno == EINTR) {
        TRY_(wait(POLLIN));
      } else {
        return socket_error("receiving");
      }
    }
    return Ok{};
  }

  int fd_;
  double deadline_;
  std::vector<char> body_ = {};
};

// Sends pattern data for `seconds`, then the end mark.
Result<uint64_t> send_stream(Connection& link, double seconds, const Flip* flip) {
  uint64_t offset = 0;
  const double until = seconds_now() + seconds;
  std::vector<char> damaged;
  do {
    const char* bytes = pattern().data() + offset % kPeriod;
    if (flip && flip->index >= offset && flip->index < offset + kChunk) {
      damaged.assign(bytes, bytes + kChunk);
      damaged[flip->index - offset] =
          static_cast<char>(damaged[flip->index - offset] ^ (1 << (flip->bit % 8)));
      bytes = damaged.data();
    }
    TRY_(link.send(data, offset, bytes, kChunk));
    offset += kChunk;
  } while (seconds_now() < until);
  TRY_(link.send(end, offset));
  return offset;
}

struct Received {
  uint64_t bytes = 0, wrong_chunks = 0;
  int64_t first_wrong = -1;  // byte offset
  double seconds = 0;
  double mbps() const { return seconds > 0 ? static_cast<double>(bytes) / seconds / 1e6 : 0; }
};
Json to_json(const Received& r) {
  return {{"bytes", r.bytes},
          {"wrong_chunks", r.wrong_chunks},
          {"first_wrong", r.first_wrong},
          {"seconds", r.seconds}};
}
Result<Received> received_from_json(const Json& json) {
  Received out;
  JsonReader r(json, "result");
  r.get("bytes", out.bytes);
  r.get("wrong_chunks", out.wrong_chunks);
  r.get("first_wrong", out.first_wrong);
  r.get("seconds", out.seconds);
  TRY_(r.finish());
  return out;
}

void verify(const char* bytes, size_t length, uint64_t offset, Received& out) {
  const char* expected = pattern().data() + offset % kPeriod;
  if (std::memcmp(bytes, expected, length) == 0) return;
  if (out.wrong_chunks++ == 0)
    out.first_wrong =
        static_cast<int64_t>(offset) + (std::mismatch(bytes, bytes + length, expected).first - bytes);
}

// Takes data frames, starting with `header`, until the end mark.
Result<Received> receive_stream(Connection& link, Header header, const Flip* flip) {
  Received out;
  const double start = seconds_now();
  while (header.type == data) {
    if (header.value != out.bytes)
      return fail(Code::corrupt, fmt::format("offset {} where {} was due", header.value, out.bytes));
    if (flip && flip->index >= out.bytes && flip->index < out.bytes + header.length)
      link.body()[flip->index - out.bytes] =
          static_cast<char>(link.body()[flip->index - out.bytes] ^ (1 << (flip->bit % 8)));
    verify(link.body(), header.length, out.bytes, out);
    out.bytes += header.length;
    TRY(header, link.receive());
  }
  if (header.type != end || header.value != out.bytes)
    return fail(Code::corrupt, fmt::format("{} bytes arrived, {} were sent", out.bytes, header.value));
  out.seconds = seconds_now() - start;
  return out;
}

Result<std::vector<double>> measure_rtt(Connection& link, double seconds) {
  std::vector<double> out;
  const double until = seconds_now() + seconds;
  for (uint64_t i = 0; i < 100 && (i < 5 || seconds_now() < until); ++i) {
    const double start = seconds_now();
    TRY_(link.send(ping, i));
    TRY(const Header reply, link.receive(pong));
    if (reply.value != i) return fail(Code::corrupt, "a ping was answered out of order");
    out.push_back((seconds_now() - start) * 1000);
  }
  return out;
}

// Numeric addresses only: a static program has no name service, and a test must not depend on one.
Result<sockaddr_storage> parse_address(const std::string& ip, uint16_t port, socklen_t& size) {
  sockaddr_storage out = {};
  auto& v4 = reinterpret_cast<sockaddr_in&>(out);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(out);
  if (::inet_pton(AF_INET, ip.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    size = sizeof(sockaddr_in);
    return out;
  }
  if (::inet_pton(AF_INET6, ip.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    size = sizeof(sockaddr_in6);
    return out;
  }
  return fail(Code::invalid, fmt::format("'{}' is not a numeric address", ip));
}

std::string address_text(const sockaddr_storage& address) {
  char host[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET6)
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, host, sizeof host);
  else
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, host, sizeof host);
  return host;
}

// Serves one client until it says goodbye. Returns how many chunks arrived damaged.
Result<uint64_t> serve(Connection& link, const Flip* flip) {
  uint64_t wrong = 0;
  while (true) {
    TRY(const Header header, link.receive());
    switch (header.type) {
      case ping:
        TRY_(link.send(pong, header.value));
        break;
      case data:
      case end: {
        TRY(const Received received, receive_stream(link, header, nullptr));
        wrong += received.wrong_chunks;
        const std::string text = to_json(received).dump();
        TRY_(link.send(result, 0, text.data(), text.size()));
        break;
      }
      case go:
        TRY_(send_stream(link, std::min(static_cast<double>(header.value) / 1000, 3600.0), flip));
        break;
      case bye:
        return wrong;
      default:
        return fail(Code::invalid, "unknown frame");
    }
  }
}

Result<int> connect_until(const LinkOptions& options) {
  socklen_t size = 0, local_size = 0;
  TRY(const sockaddr_storage to, parse_address(options.to, options.port, size));
  sockaddr_storage local = {};
  if (!options.bind.empty()) {
    TRY(local, parse_address(options.bind, 0, local_size));
  }
  const double until = seconds_now() + options.connect_seconds;
  while (true) {
    const int fd = ::socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return socket_error("opening a socket");
    bool bound = local_size == 0 || ::bind(fd, reinterpret_cast<const sockaddr*>(&local), local_size) == 0;
    int error = bound ? 0 : errno;
    if (bound && ::connect(fd, reinterpret_cast<const sockaddr*>(&to), size) != 0) error = errno;
    if (error == EINPROGRESS) {
      pollfd p{fd, POLLOUT, 0};
      const int ready = ::poll(&p, 1, std::max(1, static_cast<int>((until - seconds_now()) * 1000)));
      socklen_t length = sizeof error;
      if (ready == 1)
        ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
      else
        error = ETIMEDOUT;
    }
    if (error == 0) return fd;
    ::close(fd);
    if (error != ECONNREFUSED || seconds_now() >= until)
      return fail(Code::unavailable, fmt::format("connecting to {} port {}: {}", options.to, options.port,
                                                 std::strerror(error)));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // its server may still be starting
  }
}

struct ClientResult {
  std::vector<double> rtt;
  Received sent, received;
  uint64_t retransmits = 0;
};
Result<ClientResult> measure(const LinkOptions& options) {
  TRY(const int fd, connect_until(options));
  Connection link(fd, seconds_now() + options.seconds * 4 + 10);
  ClientResult out;
  TRY(out.rtt, measure_rtt(link, options.seconds * 0.1));
  const double each = options.seconds * 0.4;
  const Flip* flip = options.flip ? &*options.flip : nullptr;
  TRY_(send_stream(link, each, flip && flip->part == 0 ? flip : nullptr));
  TRY(const Header reply, link.receive(result));
  TRY(const Json report, parse_json({link.body(), reply.length}));
  TRY(out.sent, received_from_json(report));
  TRY_(link.send(go, static_cast<uint64_t>(each * 1000)));
  TRY(const Header first, link.receive());
  TRY(out.received, receive_stream(link, first, flip && flip->part == 1 ? flip : nullptr));
  out.retransmits = link.retransmits();
  TRY_(link.send(bye, 0));
  return out;
}

void judge_direction(const char* what, const Received& received, const std::string& path, Measurement& out) {
  if (received.wrong_chunks == 0) return;
  out.outcome = Outcome::corrupt;
  if (out.error.empty())
    out.error = fmt::format("{}: {} of {} chunks arrived damaged, first wrong byte {}", what,
                            received.wrong_chunks, received.bytes / kChunk, received.first_wrong);
  out.blame.push_back("direction " + path);
}

}  // namespace

Measurement run_link(const LinkOptions& options) {
  Measurement out;
  out.check = "link";
  const std::string self = options.bind.empty() ? "here" : options.bind;
  out.detail = {{"to", options.to},
                {"port", options.port},
                {"from", options.bind},
                {"verified", "every byte at its receiver, against a pattern both ends make"}};
  auto measured = measure(options);
  if (!measured) {
    const Code code = measured.error().code;
    out.outcome = code == Code::corrupt   ? Outcome::corrupt
                  : code == Code::timeout ? Outcome::failed
                                          : Outcome::unavailable;
    out.error = measured.error().message;
    out.blame.push_back(fmt::format("link {} - {}", self, options.to));
    return out;
  }
  out.metrics["send_mbps"] = {measured->sent.mbps(), "MB/s"};
  out.metrics["receive_mbps"] = {measured->received.mbps(), "MB/s"};
  out.metrics["rtt_ms"] = {median(measured->rtt), "ms"};
  out.metrics["rtt_p99_ms"] = {percentile(measured->rtt, 0.99), "ms"};
  out.detail["sent"] = to_json(measured->sent);
  out.detail["received"] = to_json(measured->received);
  out.detail["retransmits"] = measured->retransmits;
  out.detail["pings"] = measured->rtt.size();
  judge_direction("sent data", measured->sent, self + " -> " + options.to, out);
  judge_direction("received data", measured->received, options.to + " -> " + self, out);
  return out;
}

Result<LinkServer> LinkServer::open(LinkServerOptions options) {
  socklen_t size = 0;
  TRY(sockaddr_storage address, parse_address(options.bind, options.port, size));
  LinkServer out;
  out.fd_ = ::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  ::setsockopt(out.fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // A second attempt of an acceptance must not fail because the first one's server has not reached its deadline.
  ::setsockopt(out.fd_, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  if (::bind(out.fd_, reinterpret_cast<const sockaddr*>(&address), size) != 0 || ::listen(out.fd_, 64) != 0)
    return fail(Code::unavailable,
                fmt::format("listening on {} port {}: {}", options.bind, options.port, std::strerror(errno)));
  ::getsockname(out.fd_, reinterpret_cast<sockaddr*>(&address), &size);
  out.port_ = ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                                  : reinterpret_cast<sockaddr_in&>(address).sin_port);
  out.options_ = std::move(options);
  return out;
}

LinkServer::LinkServer(LinkServer&& other) noexcept
    : options_(std::move(other.options_)), fd_(other.fd_), port_(other.port_) {
  other.fd_ = -1;
}

LinkServer::~LinkServer() {
  if (fd_ >= 0) ::close(fd_);
}

Measurement LinkServer::run() {
  Measurement out;
  out.check = "link-serve";
  const double until = seconds_now() + options_.seconds;
  std::mutex mutex;  // guards out and sessions
  Json sessions = Json::array();
  std::vector<std::thread> threads;
  int accepted = 0;
  while (options_.sessions == 0 || accepted < options_.sessions) {
    const double left = until - seconds_now();
    if (left <= 0) break;
    pollfd p{fd_, POLLIN, 0};
    if (::poll(&p, 1, static_cast<int>(left * 1000) + 1) <= 0) continue;
    sockaddr_storage peer = {};
    socklen_t size = sizeof peer;
    const int fd = ::accept4(fd_, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) continue;
    const std::string from = address_text(peer);
    if (!options_.from.empty() && from != options_.from) {
      ::close(fd);
      continue;
    }
    ++accepted;
    threads.emplace_back([&, fd, from] {
      Connection link(fd, until + kGrace);
      const auto served = serve(link, options_.flip ? &*options_.flip : nullptr);
      const std::lock_guard lock(mutex);
      sessions.push_back({{"from", from},
                          {"error", served ? "" : served.error().message},
                          {"wrong_chunks", served.value_or(0)}});
      if (served && *served > 0) {
        out.outcome = Outcome::corrupt;
        out.error = fmt::format("{} damaged chunks from {}", *served, from);
        out.blame.push_back(fmt::format("direction {} -> {}", from, options_.bind));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  out.detail = {{"bind", options_.bind}, {"port", port_}, {"sessions", sessions}};
  return out;
}

}  // namespace muster::kernels
