#include "sys/http/http_line.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace muster::http_client {

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

Status Line::connect(const Target& target, const Deadline& deadline) {
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
