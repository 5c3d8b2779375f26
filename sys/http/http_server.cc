// The server half of sys/http/http.h: Asio for sockets, Beast for parsing requests, and our own code for
// writing responses (sys/http/http_connection.h).
//
// One io_context, a fixed pool of threads, one strand per connection. This file has TLS, threads, and the
// admission of connections.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <boost/asio/post.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "sys/contain.h"
#include "sys/http/http.h"
#include "sys/http/http_connection.h"
#include "sys/http/http_core.h"
#include "sys/http/http_listener.h"
#include "sys/openssl.h"

namespace muster {

namespace http_server {
namespace {

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
    if (!core_->options.unix_path.empty()) ::unlink(core_->options.unix_path.c_str());
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
    auto connection = std::make_shared<Connection>(core_, strand, std::move(socket), remote_of(address));
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
