// The server half of sys/http/http.h: Asio for sockets, Beast for parsing requests, our own code for
// responses (sys/http/http_connection.h). One io_context, a fixed pool of threads, one strand per connection.
// This file has TLS, threads, and the admission of connections.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/result.h"
#include "sys/contain.h"
#include "sys/http/http.h"
#include "sys/http/http_connection.h"
#include "sys/openssl.h"
#include "sys/path_kind.h"

namespace muster {
namespace http_server {
namespace {

struct Address {
  sockaddr_storage storage = {};
  socklen_t size = 0;
  sockaddr* any() { return reinterpret_cast<sockaddr*>(&storage); }
};

Result<Address> address_of(const HttpServerOptions& options) {
  Address address;
  if (!options.unix_path.empty()) {
    auto* local = reinterpret_cast<sockaddr_un*>(&address.storage);
    local->sun_family = AF_UNIX;
    if (options.unix_path.size() >= sizeof local->sun_path)
      return fail(Code::invalid, "the socket's path is too long: " + options.unix_path);
    std::memcpy(local->sun_path, options.unix_path.c_str(), options.unix_path.size() + 1);
    address.size = sizeof *local;
    return address;
  }
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (::inet_pton(AF_INET, options.address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(options.port);
    address.size = sizeof *v4;
  } else if (::inet_pton(AF_INET6, options.address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(options.port);
    address.size = sizeof *v6;
  } else {
    return fail(Code::invalid, "not a numeric address: " + options.address);
  }
  return address;
}

// Makes room for a socket. One without a listener is left over from a crash, prevents listening, and is
// removed; nothing else is. unavailable: something answers there. invalid: it is no socket.
Status clear_place(Address& address, const std::string& path) {
  TRY_(expect_at(path, {PathKind::nothing, PathKind::socket}));
  int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return Ok{};
  int number = ::connect(probe, address.any(), address.size) == 0 ? 0 : errno;
  ::close(probe);
  if (number == ECONNREFUSED) ::unlink(path.c_str());
  if (number == 0 || number == EAGAIN)
    return fail(Code::unavailable, path + ": another program answers at this socket");
  return Ok{};
}

// Opens a listening socket, which the caller closes; replaces a stale socket file. invalid: not a numeric
// address, the path is too long, or something else is there; denied, unavailable: an error of the system.
Result<int> listen_on(const HttpServerOptions& options) {
  TRY(Address address, address_of(options));
  bool local = !options.unix_path.empty();
  std::string where = local ? options.unix_path : fmt::format("{} port {}", options.address, options.port);
  if (local) TRY_(clear_place(address, options.unix_path));
  int fd = ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return fail(Code::unavailable, fmt::format("listening on {}: {}", where, strerror(errno)));
  int on = 1;
  if (!local) ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (local) ::fchmod(fd, 0660);  // at no moment does the file have wider permissions
  bool ok = ::bind(fd, address.any(), address.size) == 0 &&
            (!local || ::chmod(options.unix_path.c_str(), 0660) == 0) && ::listen(fd, 4096) == 0;
  if (ok) return fd;
  Code code = errno == EACCES || errno == EPERM ? Code::denied : Code::unavailable;
  Error error = fail(code, fmt::format("listening on {}: {}", where, strerror(errno)));
  ::close(fd);
  return error;
}

// 0 for a Unix socket.
uint16_t port_of(const Address& address) {
  if (address.storage.ss_family == AF_INET)
    return ntohs(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);
  if (address.storage.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_port);
  return 0;
}

uint16_t port_of(int fd) {
  Address address;
  address.size = sizeof address.storage;
  return ::getsockname(fd, address.any(), &address.size) == 0 ? port_of(address) : uint16_t{0};
}

// "10.20.0.11", "fd00::1" or "unix".
std::string remote_of(const Address& address) {
  char text[INET6_ADDRSTRLEN] = "unix";
  if (address.storage.ss_family == AF_INET)
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_addr, text,
                sizeof text);
  if (address.storage.ss_family == AF_INET6)
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr, text,
                sizeof text);
  std::string_view mapped = "::ffff:";
  std::string remote = text;
  return remote.find('.') != std::string::npos && remote.starts_with(mapped) ? remote.substr(mapped.size())
                                                                             : remote;
}

constexpr size_t kMaxConnections = 16384;

Status prepare_tls(asio::ssl::context& context, const TlsServerOptions& options) {
  SSL_CTX* native = context.native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // TLS sessions are not resumed: a resumed one is not verified again, and agents keep their connections.
  static const unsigned char kSessionContext[] = "muster";
  SSL_CTX_set_session_id_context(native, kSessionContext, sizeof kSessionContext - 1);
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(native, SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(native, 0);
  error_code error;
  context.use_certificate_chain(asio::buffer(options.certificate_pem), error);
  if (error) return tls::openssl_error("using the server's certificate");
  context.use_private_key(asio::buffer(options.key_pem), asio::ssl::context::pem, error);
  if (error || SSL_CTX_check_private_key(native) != 1) return tls::openssl_error("using the server's key");
  if (options.client_ca_pem.empty()) {
    if (!options.require_client_certificate) return Ok{};
    return fail(Code::invalid, "client certificates are required, but there is no CA to check them with");
  }
  TRY(auto roots, tls::read_certificates(options.client_ca_pem));
  for (const auto& root : roots) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(native), root.get()) != 1 ||
        SSL_CTX_add_client_CA(native, root.get()) != 1)
      return tls::openssl_error("trusting a client CA");
  }
  int mode = SSL_VERIFY_PEER | (options.require_client_certificate ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0);
  SSL_CTX_set_verify(native, mode, nullptr);
  return Ok{};
}

class AsioServer : public HttpServer {
 public:
  AsioServer(std::shared_ptr<Core> core, int listener)
      : core_(std::move(core)),
        port_(port_of(listener)),
        strand_(asio::make_strand(core_->io)),
        listener_(strand_, listener),
        retry_(strand_) {
    accept_later();
    for (int i = 0; i < std::max(1, core_->options.threads); ++i) threads_.emplace_back([this] { serve(); });
  }
  ~AsioServer() override { stop(); }

  uint16_t port() const override { return port_; }

  void stop() override {
    std::lock_guard once(stop_mutex_);
    if (threads_.empty()) return;
    asio::post(strand_, [this] {
      error_code ignored;
      listener_.close(ignored);
      retry_.cancel();
    });
    std::set<std::shared_ptr<Connection>> open;
    {
      std::lock_guard lock(core_->mutex);
      core_->stopping = true;
      open = core_->connections;
    }
    for (const auto& connection : open) connection->close_soon();
    open.clear();
    for (auto& thread : threads_) thread.join();
    threads_.clear();
    if (core_->options.unix_path.empty()) return;
    // It has no listener any more, unless another program has taken the place.
    if (auto address = address_of(core_->options); address.ok())
      (void)clear_place(*address, core_->options.unix_path);
  }

 private:
  // Returns when no work is left: only after stop(), since until then the listener waits for connections.
  void serve() {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);  // sendfile() has no MSG_NOSIGNAL
    ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    while (!contain_exceptions("a connection", [this] { core_->io.run(); })) {
    }  // the other connections continue
  }

  void accept_later() {
    listener_.async_wait(asio::posix::stream_descriptor::wait_read, [this](error_code error) {
      if (error) return;
      accept_all();
    });
  }

  void accept_all() {
    for (;;) {
      Address address;
      address.size = sizeof address.storage;
      int fd =
          ::accept4(listener_.native_handle(), address.any(), &address.size, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd >= 0) {
        add(fd, address);
        continue;
      }
      if (errno == EAGAIN) return accept_later();
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EBADF || errno == EINVAL) return;
      // Out of descriptors or memory: retries later, since each connection that ends frees some.
      retry_.expires_after(std::chrono::milliseconds(100));
      retry_.async_wait([this](error_code stopped) {
        if (!stopped) accept_all();
      });
      return;
    }
  }

  void add(int fd, const Address& address) {
    int family = address.storage.ss_family;
    int on = 1;
    if (family != AF_UNIX) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    Strand strand = asio::make_strand(core_->io);
    Socket socket(strand, asio::generic::stream_protocol(family, 0), fd);
    auto connection =
        std::make_shared<Connection>(core_, strand, std::move(socket), remote_of(address), port_of(address));
    {
      std::lock_guard lock(core_->mutex);
      if (core_->stopping || core_->connections.size() >= kMaxConnections) return;
      if (!core_->admit_unknown(remote_of(address))) return;
      core_->connections.insert(connection);
    }
    connection->start();
  }

  std::shared_ptr<Core> core_;
  uint16_t port_;
  Strand strand_;
  asio::posix::stream_descriptor listener_;
  asio::steady_timer retry_;
  std::mutex stop_mutex_;
  std::vector<std::thread> threads_;
};

}  // namespace
}  // namespace http_server

Result<std::unique_ptr<HttpServer>> start_http_server(HttpServerOptions options, HttpHandler handler) {
  auto core = std::make_shared<http_server::Core>();
  core->options = std::move(options);
  core->handler = std::move(handler);
  if (core->options.tls) TRY_(http_server::prepare_tls(core->tls, core->options.tls_options));
  TRY(int listener, http_server::listen_on(core->options));
  return std::unique_ptr<HttpServer>(std::make_unique<http_server::AsioServer>(std::move(core), listener));
}

}  // namespace muster
