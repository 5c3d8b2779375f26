#include "sys/http/http_line.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <poll.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <utility>
#include <vector>

namespace muster::http_client {
namespace {

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
  if (percent != std::string::npos) {  // a link-local address includes its interface: fe80::1%eth0
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

// Returns a BIO for a socket that is closed elsewhere. Unlike OpenSSL's own, it raises no SIGPIPE when the
// peer has closed the connection.
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

// True if the pin is that of the leaf, or of a CA in the sent chain that signed the leaf as that of a server.
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
    // A client certificate issued by the CA must not be accepted from a server.
    if (X509_STORE_CTX_set_default(context.get(), "ssl_server") != 1) return false;
    if (options.ignore_certificate_times) X509_STORE_CTX_set_flags(context.get(), X509_V_FLAG_NO_CHECK_TIME);
    bool good = X509_verify_cert(context.get()) == 1;
    ERR_clear_error();
    return good;
  }
  return false;
}

sockaddr_storage any_address(int family, uint16_t port) {
  sockaddr_storage address = {};
  address.ss_family = static_cast<sa_family_t>(family);
  if (family == AF_INET)
    reinterpret_cast<sockaddr_in*>(&address)->sin_port = htons(port);
  else
    reinterpret_cast<sockaddr_in6*>(&address)->sin6_port = htons(port);
  return address;
}

// Ports from which root may send, in turn from a random one on. The lower ones are more services', and NFS
// clients use the same range.
std::vector<uint16_t> reserved_ports() {
  constexpr uint16_t kLowest = 665, kHighest = 1023;
  constexpr unsigned kAll = kHighest - kLowest + 1;
  unsigned first = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&first), sizeof first);
  std::vector<uint16_t> ports;
  for (unsigned i = 0; i < kAll; ++i)
    ports.push_back(static_cast<uint16_t>(kLowest + (first % kAll + i) % kAll));
  return ports;
}

// True if this OpenSSL error means that the server rejects our certificate: it processed no request.
bool refuses_our_certificate(unsigned long code) {
  if (ERR_GET_LIB(code) != ERR_LIB_SSL) return false;
  int alert = ERR_GET_REASON(code) - SSL_AD_REASON_OFFSET;
  static constexpr std::array kAlerts = {SSL_AD_BAD_CERTIFICATE,     SSL_AD_UNSUPPORTED_CERTIFICATE,
                                         SSL_AD_CERTIFICATE_REVOKED, SSL_AD_CERTIFICATE_EXPIRED,
                                         SSL_AD_CERTIFICATE_UNKNOWN, SSL_AD_UNKNOWN_CA,
                                         SSL_AD_ACCESS_DENIED,       SSL_AD_CERTIFICATE_REQUIRED};
  return std::find(kAlerts.begin(), kAlerts.end(), alert) != kAlerts.end();
}

}  // namespace

Result<ContextPtr> make_context(const HttpClientOptions& options) {
  ContextPtr context(SSL_CTX_new(TLS_client_method()));
  if (!context) return tls::openssl_error("preparing TLS");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (options.ca_pem.empty()) {
    // Old BMCs use weak certificates and handshakes; the pin authenticates them regardless.
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

Result<Target> parse_base(std::string_view base) {
  Target target;
  if (base.substr(0, 5) == "unix:") {
    auto* local = reinterpret_cast<sockaddr_un*>(&target.address);
    std::string path(base.substr(5));
    if (path.empty() || path.size() >= sizeof local->sun_path)
      return fail(Code::invalid, "not a socket path: " + path);
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

Result<Target> parse_proxied(std::string_view base, const std::string& proxy) {
  TRY(Target target, parse_base(proxy));
  if (target.tls || target.address.ss_family == AF_UNIX)
    return fail(Code::invalid, "not a proxy such as http://10.0.0.1:3128: " + proxy);
  target.tls = base.substr(0, 8) == "https://";
  if (!target.tls && base.substr(0, 7) != "http://")
    return fail(Code::invalid, fmt::format("not an http or https address: {}", base));
  base.remove_prefix(target.tls ? 8 : 7);
  if (!base.empty() && base.back() == '/') base.remove_suffix(1);
  if (base.empty() || base.find_first_of(std::string_view("/ @\r\n\0", 6)) != std::string_view::npos)
    return fail(Code::invalid, fmt::format("not a host: {}", base));
  target.host = std::string(base);
  const bool has_port = base.rfind(':') != std::string_view::npos && base.back() != ']';
  target.authority = target.host + (has_port ? "" : target.tls ? ":443" : ":80");
  return target;
}

Deadline::Deadline(DurationMs ms)
    : at_(Clock::now() + std::chrono::milliseconds(std::max<DurationMs>(ms, 0))) {}

int Deadline::left() const {
  auto ms = std::chrono::ceil<std::chrono::milliseconds>(at_ - Clock::now()).count();
  return static_cast<int>(std::clamp<decltype(ms)>(ms, 0, 1 << 30));
}

Deadline Deadline::sooner(DurationMs ms) const { return Deadline(std::min<DurationMs>(ms, left())); }

void Line::close() {
  ssl_.reset();
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Error Line::hang_up(Code code, std::string message) {
  close();
  return fail(code, std::move(message));
}

bool Line::wait(short events, const Deadline& deadline) {
  pollfd fd{fd_, events, 0};
  for (;;) {
    int n = ::poll(&fd, 1, deadline.left());
    if (n >= 0 || errno != EINTR) return n > 0;
  }
}

template <typename Step>
Line::Progress Line::drive_plain(short events, const Deadline& deadline, Step step) {
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
Line::Progress Line::drive(const Deadline& deadline, Step step) {
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

// Makes one attempt from that port, from any if it is 0. Returns 0, or the error's number.
int Line::attempt(const Target& target, const Deadline& deadline, uint16_t source_port) {
  close();
  fd_ = ::socket(target.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return errno;
  int on = 1;
  if (target.address.ss_family != AF_UNIX) ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (source_port != 0) {
    // Else the closed connection would keep the port from a service that starts within the next minute.
    ::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const sockaddr_storage from = any_address(target.address.ss_family, source_port);
    if (::bind(fd_, reinterpret_cast<const sockaddr*>(&from), target.size) != 0) return errno;
  }
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&target.address), target.size) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  int number = ETIMEDOUT;
  socklen_t size = sizeof number;
  if (wait(POLLOUT, deadline)) ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &number, &size);
  return number;
}

Status Line::connect(const Target& target, const Deadline& deadline, bool reserved_port) {
  int number = EADDRINUSE;
  const bool network = target.address.ss_family != AF_UNIX;
  const std::vector<uint16_t> ports = reserved_port && network ? reserved_ports() : std::vector<uint16_t>();
  // A port is in use here, or its last connection to this server has just been closed: the next one.
  for (size_t i = 0; i < ports.size() && (number == EADDRINUSE || number == EADDRNOTAVAIL); ++i)
    number = attempt(target, deadline, ports[i]);
  const bool none = number == EADDRINUSE || number == EADDRNOTAVAIL;
  if (none || number == EACCES || number == EPERM) number = attempt(target, deadline, 0);
  if (number == 0) return Ok{};
  close();
  return fail(Code::unavailable, fmt::format("connecting to {}: {}", target.host, strerror(number)));
}

Status Line::tunnel(const std::string& authority, const Deadline& deadline) {
  const std::string request = fmt::format("CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n\r\n", authority);
  constexpr size_t kMostHeader = 16 << 10;
  bool any_sent = false;
  Io io = write_all(request, deadline, any_sent);
  std::string answer;
  // One byte at a time: what follows the header belongs to TLS.
  while (io == Io::done && !answer.ends_with("\r\n\r\n") && answer.size() < kMostHeader) {
    char byte = 0;
    size_t size = 0;
    io = read_some(&byte, 1, deadline, size);
    answer.append(&byte, size);
  }
  if (io != Io::done)
    return hang_up(Code::unavailable,
                   io == Io::late ? "the proxy did not answer in time" : "the proxy closed the connection");
  const bool fine = answer.size() > 12 && answer.starts_with("HTTP/1.") && answer[9] == '2';
  if (fine && answer.ends_with("\r\n\r\n")) return Ok{};
  return hang_up(Code::unavailable, fmt::format("the proxy does not connect to {}: {}", authority,
                                                answer.substr(0, std::min<size_t>(answer.find('\r'), 80))));
}

Status Line::start_tls(SSL_CTX* context, const Target& target, const HttpClientOptions& options,
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
  if (io == Io::refused) return hang_up(Code::denied, target.host + " rejects our certificate: " + reason_);
  if (io != Io::done)
    return hang_up(Code::unavailable,
                   fmt::format("TLS with {}: {}", target.host, io == Io::late ? "no answer" : reason_));
  if (!options.pin_sha256.empty() && (!leaf || !pin_holds(ssl_.get(), leaf.get(), options)))
    return hang_up(Code::denied, fmt::format("{} presents the certificate {}, not the pinned one, {}",
                                             target.host, seen, options.pin_sha256));
  if (!options.peer_organization.empty() &&
      (!leaf || tls::subject_field(leaf.get(), NID_organizationName) != options.peer_organization))
    return hang_up(Code::denied, fmt::format("{} presents a certificate whose organization is not \"{}\"",
                                             target.host, options.peer_organization));
  return Ok{};
}

bool Line::idle_and_alive() {
  pollfd fd{fd_, POLLIN, 0};
  return open() && ::poll(&fd, 1, 0) == 0;
}

Io Line::write_all(std::string_view data, const Deadline& deadline, bool& any_sent) {
  while (!data.empty()) {
    size_t piece = std::min<size_t>(data.size(), 1 << 20);
    if (ssl_) any_sent = true;  // once OpenSSL has the data, it is unknown how much of it was sent
    Progress p =
        ssl_ ? drive(deadline, [&] { return SSL_write(ssl_.get(), data.data(), static_cast<int>(piece)); })
             : drive_plain(POLLOUT, deadline, [&] { return ::send(fd_, data.data(), piece, MSG_NOSIGNAL); });
    if (p.io != Io::done) return p.io;
    any_sent = true;
    data.remove_prefix(p.size);
  }
  return Io::done;
}

Io Line::read_some(char* into, size_t room, const Deadline& deadline, size_t& size) {
  Progress p = ssl_ ? drive(deadline, [&] { return SSL_read(ssl_.get(), into, static_cast<int>(room)); })
                    : drive_plain(POLLIN, deadline, [&] { return ::recv(fd_, into, room, 0); });
  size = p.size;
  return p.io == Io::done && p.size == 0 ? Io::closed : p.io;
}

}  // namespace muster::http_client
