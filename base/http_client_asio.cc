// The client half of base/http.h: a blocking socket driven by poll(), OpenSSL over it, Beast for parsing
// answers.
//
// No event loop: one call is one conversation, and every wait in it is bounded by the call's deadline.
// OpenSSL writes through a BIO of ours, because its own would raise SIGPIPE when the peer has gone.
#include "base/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <optional>

#include <boost/beast/http/error.hpp>
#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <fmt/format.h>

#include "base/digest.h"
#include "base/openssl.h"

namespace muster {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

// A point in time that every wait of a call respects.
class Deadline {
 public:
  explicit Deadline(DurationMs ms)
      : at_(Clock::now() + std::chrono::milliseconds(std::max<DurationMs>(ms, 0))) {}
  int left() const {
    auto ms = std::chrono::ceil<std::chrono::milliseconds>(at_ - Clock::now()).count();
    return static_cast<int>(std::clamp<decltype(ms)>(ms, 0, 1 << 30));
  }
  Deadline sooner(DurationMs ms) const { return Deadline(std::min<DurationMs>(ms, left())); }

 private:
  Clock::time_point at_;
};

// ---- address

struct Target {
  bool tls = false;
  sockaddr_storage address = {};
  socklen_t size = 0;
  std::string host;  // for the Host header
};

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
  if (percent != std::string::npos) {  // a link-local address names its interface
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

Result<Target> parse_base(std::string_view base) {
  Target target;
  if (base.substr(0, 5) == "unix:") {
    auto* local = reinterpret_cast<sockaddr_un*>(&target.address);
    std::string path(base.substr(5));
    if (path.empty() || path.size() >= sizeof local->sun_path)
      return fail(Code::invalid, "not a socket's path: " + path);
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

// ---- TLS

int bio_fd(BIO* bio) { return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))); }

int bio_write(BIO* bio, const char* data, int size) {
  BIO_clear_retry_flags(bio);
  ssize_t n = ::send(bio_fd(bio), data, static_cast<size_t>(size), MSG_NOSIGNAL);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(n);
}

int bio_read(BIO* bio, char* data, int size) {
  BIO_clear_retry_flags(bio);
  ssize_t n = ::recv(bio_fd(bio), data, static_cast<size_t>(size), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  return static_cast<int>(n);
}

long bio_control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

BIO* make_bio(int fd) {
  static BIO_METHOD* method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "muster socket");
    BIO_meth_set_write(made, bio_write);
    BIO_meth_set_read(made, bio_read);
    BIO_meth_set_ctrl(made, bio_control);
    return made;
  }();
  BIO* bio = BIO_new(method);
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(fd)));
  BIO_set_init(bio, 1);
  return bio;
}

using ContextPtr = std::unique_ptr<SSL_CTX, tls::Freer<SSL_CTX_free>>;
using SslPtr = std::unique_ptr<SSL, tls::Freer<SSL_free>>;

Result<ContextPtr> make_context(const HttpClientOptions& options) {
  ContextPtr context(SSL_CTX_new(TLS_client_method()));
  if (!context) return tls::openssl_error("preparing TLS");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (options.ca_pem.empty()) {
    // The certificates and handshakes of old BMCs are weak; a pin says more about them than their strength
    // does.
    SSL_CTX_set_security_level(context.get(), 0);
    SSL_CTX_set_options(context.get(), SSL_OP_LEGACY_SERVER_CONNECT);
  } else {
    TRY(auto roots, tls::read_certificates(options.ca_pem));
    for (const auto& root : roots)
      if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), root.get()) != 1)
        return tls::openssl_error("trusting a CA");
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    if (options.ignore_certificate_times)
      X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context.get()), X509_V_FLAG_NO_CHECK_TIME);
  }
  if (options.certificate_pem.empty()) return context;
  TRY(auto chain, tls::read_certificates(options.certificate_pem));
  TRY(auto key, tls::read_key(options.key_pem));
  bool ok = SSL_CTX_use_certificate(context.get(), chain[0].get()) == 1 &&
            SSL_CTX_use_PrivateKey(context.get(), key.get()) == 1 &&
            SSL_CTX_check_private_key(context.get()) == 1;
  for (size_t i = 1; ok && i < chain.size(); ++i)
    ok = SSL_CTX_add1_chain_cert(context.get(), chain[i].get()) == 1;
  if (!ok) return tls::openssl_error("using the client's certificate");
  return context;
}

// Is the pin the leaf's, or that of a CA in the sent chain that did sign the leaf, for a server?
bool pin_holds(SSL* ssl, X509* leaf, const HttpClientOptions& options) {
  if (tls::fingerprint(leaf) == options.pin_sha256) return true;
  STACK_OF(X509)* chain = SSL_get_peer_cert_chain(ssl);
  for (int i = 1; i < sk_X509_num(chain); ++i) {
    X509* candidate = sk_X509_value(chain, i);
    if (tls::fingerprint(candidate) != options.pin_sha256) continue;
    tls::StorePtr store(X509_STORE_new());
    X509_STORE_add_cert(store.get(), candidate);
    std::unique_ptr<X509_STORE_CTX, tls::Freer<X509_STORE_CTX_free>> context(X509_STORE_CTX_new());
    if (X509_STORE_CTX_init(context.get(), store.get(), leaf, chain) != 1) return false;
    // Whom the CA signed as a client may not pose as a server.
    if (X509_STORE_CTX_set_default(context.get(), "ssl_server") != 1) return false;
    if (options.ignore_certificate_times) X509_STORE_CTX_set_flags(context.get(), X509_V_FLAG_NO_CHECK_TIME);
    bool good = X509_verify_cert(context.get()) == 1;
    ERR_clear_error();
    return good;
  }
  return false;
}

// Alerts by which a server says that it does not accept our certificate: it looked at no request.
bool refuses_our_certificate(unsigned long code) {
  if (ERR_GET_LIB(code) != ERR_LIB_SSL) return false;
  int alert = ERR_GET_REASON(code) - SSL_AD_REASON_OFFSET;
  static constexpr std::array kAlerts = {SSL_AD_BAD_CERTIFICATE,     SSL_AD_UNSUPPORTED_CERTIFICATE,
                                         SSL_AD_CERTIFICATE_REVOKED, SSL_AD_CERTIFICATE_EXPIRED,
                                         SSL_AD_CERTIFICATE_UNKNOWN, SSL_AD_UNKNOWN_CA,
                                         SSL_AD_ACCESS_DENIED,       SSL_AD_CERTIFICATE_REQUIRED};
  return std::find(kAlerts.begin(), kAlerts.end(), alert) != kAlerts.end();
}

// ---- connection

enum class Io { done, closed, late, refused };

// A connected socket, plain or TLS.
class Line {
 public:
  Line() = default;
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line() { close(); }

  bool open() const { return fd_ >= 0; }
  void close() {
    ssl_.reset();
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

  Status connect(const Target& target, const Deadline& deadline) {
    close();
    fd_ = ::socket(target.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd_ < 0)
      return fail(Code::unavailable, fmt::format("connecting to {}: {}", target.host, strerror(errno)));
    int on = 1;
    if (target.address.ss_family != AF_UNIX) ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    int number =
        ::connect(fd_, reinterpret_cast<const sockaddr*>(&target.address), target.size) == 0 ? 0 : errno;
    if (number == EINPROGRESS) {
      number = ETIMEDOUT;
      socklen_t size = sizeof number;
      if (wait(POLLOUT, deadline)) ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &number, &size);
    }
    if (number == 0) return Ok{};
    close();
    return fail(Code::unavailable, fmt::format("connecting to {}: {}", target.host, strerror(number)));
  }

  Status start_tls(SSL_CTX* context, const Target& target, const HttpClientOptions& options,
                   const Deadline& deadline, std::string& seen) {
    ssl_.reset(SSL_new(context));
    BIO* bio = make_bio(fd_);
    SSL_set_bio(ssl_.get(), bio, bio);
    if (!options.host_name.empty() && (SSL_set1_host(ssl_.get(), options.host_name.c_str()) != 1 ||
                                       SSL_set_tlsext_host_name(ssl_.get(), options.host_name.c_str()) != 1))
      return hang_up(Code::invalid, "not a host name: " + options.host_name);
    Io io = drive(deadline, [&] { return SSL_connect(ssl_.get()); }).io;
    tls::CertificatePtr leaf(SSL_get1_peer_certificate(ssl_.get()));
    if (leaf) seen = tls::fingerprint(leaf.get());
    long verdict = SSL_get_verify_result(ssl_.get());
    if (!options.ca_pem.empty() && verdict != X509_V_OK)
      return hang_up(Code::denied, fmt::format("{}'s certificate is not acceptable: {}", target.host,
                                               X509_verify_cert_error_string(verdict)));
    if (io == Io::refused) return hang_up(Code::denied, target.host + " refuses our certificate: " + reason_);
    if (io != Io::done)
      return hang_up(Code::unavailable,
                     fmt::format("TLS with {}: {}", target.host, io == Io::late ? "no answer" : reason_));
    if (!options.pin_sha256.empty() && (!leaf || !pin_holds(ssl_.get(), leaf.get(), options)))
      return hang_up(Code::denied, fmt::format("{} has certificate {}, not the pinned {}", target.host, seen,
                                               options.pin_sha256));
    if (!options.peer_organization.empty() &&
        (!leaf || tls::subject_field(leaf.get(), NID_organizationName) != options.peer_organization))
      return hang_up(Code::denied, fmt::format("{} shows the certificate of somebody who is not \"{}\"",
                                               target.host, options.peer_organization));
    return Ok{};
  }

  // An idle connection that has something to say is one that was closed.
  bool idle_and_alive() {
    pollfd fd{fd_, POLLIN, 0};
    return open() && ::poll(&fd, 1, 0) == 0;
  }

  // `any_sent` tells whether a single byte may have reached the peer.
  Io write_all(std::string_view data, const Deadline& deadline, bool& any_sent) {
    while (!data.empty()) {
      size_t piece = std::min<size_t>(data.size(), 1 << 20);
      if (ssl_) any_sent = true;  // once OpenSSL has seen it, what is out is not ours to know
      Progress p =
          ssl_
              ? drive(deadline, [&] { return SSL_write(ssl_.get(), data.data(), static_cast<int>(piece)); })
              : drive_plain(POLLOUT, deadline, [&] { return ::send(fd_, data.data(), piece, MSG_NOSIGNAL); });
      if (p.io != Io::done) return p.io;
      any_sent = true;
      data.remove_prefix(p.size);
    }
    return Io::done;
  }

  // `size` is 0 only at the end.
  Io read_some(char* into, size_t room, const Deadline& deadline, size_t& size) {
    Progress p = ssl_ ? drive(deadline, [&] { return SSL_read(ssl_.get(), into, static_cast<int>(room)); })
                      : drive_plain(POLLIN, deadline, [&] { return ::recv(fd_, into, room, 0); });
    size = p.size;
    return p.io == Io::done && p.size == 0 ? Io::closed : p.io;
  }

  const std::string& reason() const { return reason_; }

 private:
  struct Progress {
    Io io = Io::done;
    size_t size = 0;
  };

  Error hang_up(Code code, std::string message) {
    close();
    return fail(code, std::move(message));
  }

  bool wait(short events, const Deadline& deadline) {
    pollfd fd{fd_, events, 0};
    for (;;) {
      int n = ::poll(&fd, 1, deadline.left());
      if (n >= 0 || errno != EINTR) return n > 0;
    }
  }

  template <typename Step>
  Progress drive_plain(short events, const Deadline& deadline, Step step) {
    for (;;) {
      ssize_t n = step();
      if (n >= 0) return {Io::done, static_cast<size_t>(n)};
      if (errno != EAGAIN && errno != EINTR) {
        reason_ = strerror(errno);
        return {Io::closed, 0};
      }
      if (!wait(events, deadline)) return {Io::late, 0};
    }
  }

  template <typename Step>
  Progress drive(const Deadline& deadline, Step step) {
    for (;;) {
      ERR_clear_error();
      errno = 0;
      int n = step();
      if (n > 0) return {Io::done, static_cast<size_t>(n)};
      int error = SSL_get_error(ssl_.get(), n);
      if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
        if (!wait(error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, deadline)) return {Io::late, 0};
        continue;
      }
      unsigned long code = ERR_peek_last_error();
      reason_ = error == SSL_ERROR_SSL ? tls::openssl_error("TLS").message
                : errno                ? strerror(errno)
                                       : "the connection was closed";
      ERR_clear_error();
      return {refuses_our_certificate(code) ? Io::refused : Io::closed, 0};
    }
  }

  int fd_ = -1;
  SslPtr ssl_;
  std::string reason_;
};

// ---- client

// A Beast body that hands its bytes on instead of keeping them.
struct SinkBody {
  using value_type = std::function<bool(std::string_view)>;  // false: no more, please
  class reader {
   public:
    template <bool isRequest, class Fields>
    reader(http::header<isRequest, Fields>&, value_type& sink) : sink_(sink) {}
    void init(const boost::optional<uint64_t>&, error_code& error) { error = {}; }
    template <class Buffers>
    size_t put(const Buffers& buffers, error_code& error) {
      error = {};
      size_t total = 0;
      for (auto it = boost::asio::buffer_sequence_begin(buffers);
           it != boost::asio::buffer_sequence_end(buffers); ++it) {
        boost::asio::const_buffer piece(*it);
        total += piece.size();
        std::string_view text(static_cast<const char*>(piece.data()), piece.size());
        if (!error && !text.empty() && !sink_(text)) error = http::error::body_limit;
      }
      return total;
    }
    void finish(error_code& error) { error = {}; }

   private:
    value_type& sink_;
  };
};
using Parser = http::response_parser<SinkBody>;

// How one exchange over one connection ended.
struct Exchange {
  Io io = Io::done;
  bool any_sent = false;
  bool any_received = false;
  bool stopped_by_sink = false;
  std::string complaint;
};

class BlockingClient : public HttpClient {
 public:
  BlockingClient(HttpClientOptions options, Target target, ContextPtr context)
      : options_(std::move(options)), target_(std::move(target)), context_(std::move(context)) {}

  Result<HttpResponse> request(HttpRequest request, DurationMs deadline) override {
    std::string body;
    bool too_large = false;
    auto keep = [&](std::string_view piece) {
      body += piece;
      too_large = body.size() > options_.max_answer;
      return !too_large;
    };
    auto restart = [&] { body.clear(); };
    TRY(HttpResponse response, converse(request, Deadline(deadline), keep, restart, false));
    if (too_large) return fail(Code::failed, "the answer is too large");
    response.body = std::move(body);
    return response;
  }

  Result<HttpResponse> stream(HttpRequest request, DurationMs deadline,
                              std::function<bool(std::string_view)> on_chunk) override {
    return converse(
        request, Deadline(deadline), std::move(on_chunk), [] {}, true);
  }

  std::string peer_fingerprint() const override { return fingerprint_; }

 private:
  Result<HttpResponse> converse(const HttpRequest& request, const Deadline& deadline,
                                SinkBody::value_type sink, const std::function<void()>& restart,
                                bool streaming) {
    TRY(std::string head, head_of(request));
    for (bool retried = false;; retried = true) {
      bool reused = line_.idle_and_alive();
      if (!reused) TRY_(connect(deadline));
      std::optional<Parser> parser;
      Exchange exchange = talk(request, head, deadline, sink, parser);
      // The one repetition that is safe: a read-only (or unsent) request on a connection that had been closed
      // while idle.
      bool harmless = !exchange.any_sent || request.method == "GET";
      if (exchange.io == Io::closed && reused && !retried && !exchange.any_received && harmless) {
        line_.close();
        restart();
        continue;
      }
      return conclude(exchange, *parser, streaming);
    }
  }

  Status connect(const Deadline& deadline) {
    fingerprint_.clear();
    Deadline soon = deadline.sooner(options_.connect_timeout);
    TRY_(line_.connect(target_, soon));
    if (target_.tls) TRY_(line_.start_tls(context_.get(), target_, options_, soon, fingerprint_));
    return Ok{};
  }

  Exchange talk(const HttpRequest& request, const std::string& head, const Deadline& deadline,
                const SinkBody::value_type& sink, std::optional<Parser>& parser) {
    Exchange exchange;
    fresh(parser, request, sink);
    Io sent = request.body.size() < 65536 ? line_.write_all(head + request.body, deadline, exchange.any_sent)
                                          : line_.write_all(head, deadline, exchange.any_sent);
    if (sent == Io::done && request.body.size() >= 65536)
      sent = line_.write_all(request.body, deadline, exchange.any_sent);
    exchange.io = sent;
    if (sent == Io::late || !exchange.any_sent) return exchange;
    // A server may answer and close before it has read everything ("too large"): its answer is worth reading.
    std::string pending;
    std::array<char, 65536> buffer;
    while (!parser->is_done()) {
      size_t size = 0;
      exchange.io = line_.read_some(buffer.data(), buffer.size(), deadline, size);
      if (exchange.io != Io::done) break;
      exchange.any_received = true;
      pending.append(buffer.data(), size);
      if (!feed(exchange, pending, request, sink, parser)) break;
    }
    // The end of the connection is a proper end for a body without a length.
    if (exchange.io == Io::closed && parser->is_header_done() && parser->need_eof()) {
      error_code ignored;
      parser->put_eof(ignored);
      if (parser->is_done()) exchange.io = Io::done;
    }
    if (sent != Io::done || !pending.empty()) line_.close();  // not fit to be used again
    return exchange;
  }

  static void fresh(std::optional<Parser>& parser, const HttpRequest& request,
                    const SinkBody::value_type& sink) {
    parser.emplace();
    parser->get().body() = sink;
    parser->eager(true);
    parser->header_limit(64 << 10);
    parser->body_limit(boost::none);
    parser->skip(request.method == "HEAD");
  }

  // Parses what came; false when the conversation is over.
  bool feed(Exchange& exchange, std::string& pending, const HttpRequest& request,
            const SinkBody::value_type& sink, std::optional<Parser>& parser) {
    for (;;) {
      error_code error;
      size_t used = parser->put(boost::asio::buffer(pending), error);
      pending.erase(0, used);
      if (error == http::error::need_more) return true;
      if (error == http::error::body_limit)
        exchange.stopped_by_sink = true;
      else if (error)
        exchange.complaint = error.message();
      if (error) return false;
      if (!parser->is_done()) return true;
      if (parser->get().result_int() / 100 != 1) return false;
      fresh(parser, request, sink);  // "100 Continue" and its like precede the answer
    }
  }

  Result<HttpResponse> conclude(const Exchange& exchange, const Parser& parser, bool streaming) {
    bool whole = parser.is_done() && exchange.io == Io::done && exchange.complaint.empty();
    // A stream of unknown length just ends; one of known length must not pass for whole when it is not.
    bool ended =
        streaming && parser.is_header_done() && !parser.content_length() && exchange.complaint.empty();
    if (!whole || !options_.keep_alive || !parser.keep_alive()) line_.close();
    if (!whole && !ended && !exchange.stopped_by_sink) return problem(exchange);
    HttpResponse response;
    const auto& message = parser.get();
    response.status = static_cast<int>(message.result_int());
    for (const auto& field : message) {
      std::string& value = response.headers[std::string(field.name_string())];
      value += (value.empty() ? "" : ", ") + std::string(field.value());
    }
    return response;
  }

  Error problem(const Exchange& exchange) {
    const std::string& host = target_.host;
    if (exchange.io == Io::refused)
      return fail(Code::denied, host + " refuses our certificate: " + line_.reason());
    if (!exchange.any_sent) return fail(Code::unavailable, "nothing could be sent to " + host);
    if (!exchange.complaint.empty())
      return fail(Code::timeout,
                  fmt::format("{} answered something unreadable: {}", host, exchange.complaint));
    if (exchange.io == Io::late) return fail(Code::timeout, host + " did not answer in time");
    return fail(Code::timeout, host + " closed the connection before its answer was complete");
  }

  Result<std::string> head_of(const HttpRequest& request) const {
    auto clean = [](std::string_view text) {
      return text.find_first_of(std::string_view("\r\n\0", 3)) == text.npos;
    };
    bool good = clean(request.method) && !request.method.empty() && !request.target.empty() &&
                request.target.find_first_of(std::string_view(" \r\n\0", 4)) == std::string::npos;
    for (const auto& [name, value] : request.headers) good = good && clean(name) && clean(value);
    if (!good) return fail(Code::invalid, "the request contains characters that HTTP does not allow");
    Headers headers = request.headers;
    headers.try_emplace("Host", options_.host_name.empty() ? target_.host : options_.host_name);
    headers.try_emplace("User-Agent", "muster/" MUSTER_VERSION);
    headers.try_emplace("Accept", "*/*");
    if (!options_.basic_user.empty())
      headers.try_emplace("Authorization",
                          "Basic " + to_base64(options_.basic_user + ":" + options_.basic_password));
    if (!request.body.empty() || (request.method != "GET" && request.method != "HEAD"))
      headers["Content-Length"] = std::to_string(request.body.size());
    if (!options_.keep_alive) headers["Connection"] = "close";
    std::string head = fmt::format("{} {} HTTP/1.1\r\n", request.method, request.target);
    for (const auto& [name, value] : headers) head += fmt::format("{}: {}\r\n", name, value);
    return head + "\r\n";
  }

  HttpClientOptions options_;
  Target target_;
  ContextPtr context_;
  Line line_;
  std::string fingerprint_;
};

}  // namespace

Result<std::unique_ptr<HttpClient>> make_http_client(HttpClientOptions options) {
  TRY(Target target, parse_base(options.base));
  ContextPtr context;
  if (target.tls) {
    if (options.ca_pem.empty() && options.pin_sha256.empty() && !options.insecure_first_use)
      return fail(Code::invalid, "https needs a CA or a pinned certificate");
    if (!options.host_name.empty() && options.ca_pem.empty())
      return fail(Code::invalid, "a host name can only be checked with a CA");
    TRY(context, make_context(options));
  }
  return std::unique_ptr<HttpClient>(
      std::make_unique<BlockingClient>(std::move(options), std::move(target), std::move(context)));
}

}  // namespace muster
