// Connection's functions for receiving: handshake, request, handler.
#include "sys/http/http_connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <string_view>

#include <boost/asio/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "sys/log.h"
#include "sys/openssl.h"

namespace muster::http_server {

namespace http = boost::beast::http;

namespace {

class PlainStream : public ByteStream {
 public:
  explicit PlainStream(Socket socket) : socket_(std::move(socket)) {}
  Socket& socket() override { return socket_; }
  SSL* tls() override { return nullptr; }
  void handshake(Done done) override { done({}, 0); }
  void read(asio::mutable_buffer into, Done done) override { socket_.async_read_some(into, std::move(done)); }
  void write(std::array<asio::const_buffer, 2> pieces, Done done) override {
    asio::async_write(socket_, pieces, std::move(done));
  }

 private:
  Socket socket_;
};

class TlsStream : public ByteStream {
 public:
  TlsStream(Socket socket, asio::ssl::context& context) : stream_(std::move(socket), context) {}
  Socket& socket() override { return stream_.next_layer(); }
  SSL* tls() override { return stream_.native_handle(); }
  void handshake(Done done) override {
    stream_.async_handshake(asio::ssl::stream_base::server,
                            [done = std::move(done)](error_code error) { done(error, 0); });
  }
  void read(asio::mutable_buffer into, Done done) override { stream_.async_read_some(into, std::move(done)); }
  void write(std::array<asio::const_buffer, 2> pieces, Done done) override {
    asio::async_write(stream_, pieces, std::move(done));
  }

 private:
  asio::ssl::stream<Socket> stream_;
};

// None for a socket that is not a Unix socket.
std::optional<uint32_t> uid_of_peer(int socket) {
  sockaddr_storage own = {};
  socklen_t size = sizeof own;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size) != 0 || own.ss_family != AF_UNIX)
    return std::nullopt;  // a TCP socket has credentials, too, of no user
  ucred peer = {};
  size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return peer.uid;
}

constexpr size_t kHeaderLimit = 8192;
constexpr size_t kPipelineLimit = 64 << 10;
// Generous: an emulated node needs seconds for a handshake.
constexpr DurationMs kHandshakeMs = 30 * kSecond;
constexpr DurationMs kHeaderMs = 30 * kSecond;

class ConnectionResponder : public Responder {
 public:
  explicit ConnectionResponder(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}
  ~ConnectionResponder() override {
    State was = state_.exchange(State::done);
    if (was == State::open)
      connection_->post(
          [](Connection& c) { c.send(HttpResponse::text(500, "the request was not answered\n")); });
    // A stream that was not ended: disconnect, so that the client does not take it for complete.
    if (was == State::streaming) connection_->post([](Connection& c) { c.close(); });
  }

  void respond(HttpResponse response) override {
    if (!move(State::open, State::done)) return;
    connection_->post(
        [response = std::move(response)](Connection& c) mutable { c.send(std::move(response)); });
  }
  void start_stream(HttpResponse head) override {
    if (!move(State::open, State::streaming)) return;
    connection_->post([head = std::move(head)](Connection& c) mutable { c.start_stream(std::move(head)); });
  }
  bool write(std::string chunk) override {
    if (state_ != State::streaming || connection_->gone()) return false;
    if (chunk.empty()) return true;
    if (!connection_->reserve(chunk.size())) {
      connection_->post([](Connection& c) { c.close(); });
      return false;
    }
    connection_->post([chunk = std::move(chunk)](Connection& c) mutable { c.send_chunk(std::move(chunk)); });
    return true;
  }
  void end_stream() override {
    if (move(State::streaming, State::done)) connection_->post([](Connection& c) { c.finish_stream(); });
  }

 private:
  enum class State { open, streaming, done };
  bool move(State from, State to) { return state_.compare_exchange_strong(from, to); }

  std::shared_ptr<Connection> connection_;
  std::atomic<State> state_ = State::open;
};

}  // namespace

std::unique_ptr<ByteStream> plain_stream(Socket socket) {
  return std::make_unique<PlainStream>(std::move(socket));
}
std::unique_ptr<ByteStream> tls_stream(Socket socket, asio::ssl::context& context) {
  return std::make_unique<TlsStream>(std::move(socket), context);
}

struct RequestParser : http::request_parser<http::string_body> {};

Connection::Connection(std::shared_ptr<Core> core, Strand strand, Socket socket, std::string remote,
                       uint16_t remote_port)
    : core_(std::move(core)),
      strand_(std::move(strand)),
      timer_(strand_),
      remote_(std::move(remote)),
      remote_port_(remote_port),
      stream_(core_->options.tls ? tls_stream(std::move(socket), core_->tls)
                                 : plain_stream(std::move(socket))),
      known_(!core_->options.unix_path.empty()) {}

Connection::~Connection() = default;

void Connection::start() {
  asio::post(strand_, [self = shared_from_this()] {
    self->deadline(kHandshakeMs);
    self->stream_->handshake([self](error_code error, size_t) {
      if (error || self->closed_) return self->close();
      self->note_peer();
      self->next_request();
    });
  });
}

void Connection::close_soon() {
  asio::post(strand_, [self = shared_from_this()] { self->close(); });
}

void Connection::close() {
  if (closed_) return;
  closed_ = gone_ = true;
  timer_.cancel();
  error_code ignored;
  stream_->socket().close(ignored);
  file_.close();
  release_body();
  std::lock_guard lock(core_->mutex);
  if (core_->connections.erase(shared_from_this()) > 0 && !known_) core_->forget_unknown(remote_);
}

void Connection::deadline(DurationMs ms) {
  if (closed_) return;
  uint64_t round = ++timer_round_;
  timer_.expires_after(std::chrono::milliseconds(ms));
  timer_.async_wait([self = shared_from_this(), round](error_code) {
    // An expiry that was already queued when its deadline was moved has an old round number, and is ignored.
    if (round == self->timer_round_) self->close();
  });
}

void Connection::note_peer() {
  peer_uid_ = uid_of_peer(stream_->socket().native_handle());
  SSL* tls = stream_->tls();
  if (!tls || SSL_get_verify_result(tls) != X509_V_OK) return;
  tls::CertificatePtr certificate(SSL_get1_peer_certificate(tls));
  if (!certificate) return;
  peer_ = tls::subject_field(certificate.get(), NID_commonName);
  peer_organization_ = tls::subject_field(certificate.get(), NID_organizationName);
  peer_serial_ = tls::serial_hex(certificate.get());
}

void Connection::note_known() {
  if (std::exchange(known_, true)) return;
  std::lock_guard lock(core_->mutex);
  core_->forget_unknown(remote_);
}

bool Connection::reserve_body(uint64_t length) {
  std::lock_guard lock(core_->mutex);
  const size_t most = known_ ? core_->options.max_bodies : core_->options.max_bodies / 4;
  if (core_->bodies + length > most) return false;
  core_->bodies += length;
  reserved_ = length;
  return true;
}

void Connection::release_body() {
  if (reserved_ == 0) return;
  std::lock_guard lock(core_->mutex);
  core_->bodies -= std::exchange(reserved_, 0);
}

void Connection::next_request() {
  state_ = State::header;
  parser_ = std::make_unique<RequestParser>();
  parser_->header_limit(kHeaderLimit);
  parser_->body_limit(core_->options.max_body);
  deadline(core_->options.idle_timeout);
  if (in_.empty())
    read_more();
  else
    on_data();
}

void Connection::read_more() {
  if (reading_ || closed_) return;
  reading_ = true;
  stream_->read(asio::buffer(read_buffer_),
                [self = shared_from_this()](error_code error, size_t size) { self->on_read(error, size); });
}

void Connection::on_read(error_code error, size_t size) {
  reading_ = false;
  if (closed_) return;
  if (error) {
    gone_ = true;
    // A client may close its sending half and still wait for the answer, but not one of an event stream.
    if (state_ == State::answering && !stream_open_ && error == asio::error::eof) {
      keep_alive_ = false;
      return;
    }
    return close();
  }
  if (state_ == State::lingering) return read_more();
  if (in_.empty() && state_ == State::header) deadline(kHeaderMs);
  in_.append(read_buffer_.data(), size);
  if (state_ == State::answering) {
    // Pipelined requests wait; reading continues, because only that shows that the client has gone.
    if (in_.size() < kPipelineLimit) read_more();
    return;
  }
  on_data();
}

void Connection::on_data() {
  if (state_ == State::body) return on_body();
  size_t end = in_.find("\r\n\r\n");
  if (std::min(end, in_.size()) > kHeaderLimit) return refuse(431, "the header is too large");
  if (end == std::string::npos) return read_more();
  on_header(end + 4);
}

void Connection::on_header(size_t size) {
  std::string_view header(in_.data(), size);
  // Parsers disagree about folded lines.
  if (header.find("\n ") != header.npos || header.find("\n\t") != header.npos)
    return refuse(400, "folded header lines are not accepted");
  error_code error;
  parser_->eager(false);
  parser_->put(asio::buffer(header), error);
  if (error == http::error::body_limit) return refuse(413, "the body is too large");
  if (error || !parser_->is_header_done()) return refuse(400, "the request is malformed");
  in_.erase(0, size);
  check_header();
}

void Connection::check_header() {
  const auto& message = parser_->get();
  http10_ = message.version() < 11;
  keep_alive_ = !http10_ && message.keep_alive();
  if (message.count(http::field::transfer_encoding) > 0) return refuse(411, "Content-Length is required");
  if (message.count(http::field::content_length) > 1 || message.count(http::field::host) > 1)
    return refuse(400, "Content-Length and Host may be given only once");
  const Trust trust = known_ || !core_->options.trust ? Trust::unknown : core_->options.trust(head_request());
  if (trust == Trust::known) note_known();
  const uint64_t length = parser_->content_length().value_or(0);
  if (!known_ && trust != Trust::guest && length > core_->options.max_unknown_body)
    return refuse(413, "the body is too large for an unauthenticated client");
  if (length > 0 && core_->options.holds_back && core_->options.holds_back(head_request(), length))
    return refuse(429, "too much was sent in vain; try again later");
  if (length > 0 && !reserve_body(length))
    return refuse(503, "too many bodies are being received; try again later");
  state_ = State::body;
  body_deadline();
  if (message[http::field::expect] == "100-continue" && !parser_->is_done())
    return write("HTTP/1.1 100 Continue\r\n\r\n", "", [this] {
      body_deadline();
      on_body();
    });
  on_body();
}

// The deadline is for the whole body, so that a client cannot hold a connection by sending single bytes.
void Connection::body_deadline() {
  uint64_t length = parser_->content_length().value_or(0);
  deadline(kWriteMs + static_cast<DurationMs>(length / kSlowestBytesPerSecond) * kSecond);
}

void Connection::on_body() {
  error_code error;
  if (!parser_->is_done() && !in_.empty()) {
    size_t used = parser_->put(asio::buffer(in_), error);
    in_.erase(0, used);
  }
  if (error == http::error::body_limit) return refuse(413, "the body is too large");
  if (error && error != http::error::need_more) return refuse(400, "the request is malformed");
  if (parser_->is_done()) return dispatch();
  read_more();
}

HttpRequest Connection::head_request() const {
  const auto& message = parser_->get();
  HttpRequest request;
  request.method = std::string(message.method_string());
  request.target = std::string(message.target());
  for (const auto& field : message) {
    std::string& value = request.headers[std::string(field.name_string())];
    value += (value.empty() ? "" : ", ") + std::string(field.value());
  }
  request.peer = peer_;
  request.peer_serial = peer_serial_;
  request.peer_organization = peer_organization_;
  request.remote = remote_;
  request.remote_port = remote_port_;
  request.peer_uid = peer_uid_;
  return request;
}

void Connection::dispatch() {
  HttpRequest request = head_request();
  request.body = std::move(parser_->release().body());
  release_body();
  request_.method = request.method;
  request_.headers = request.headers;
  if (auto parsed = parse_target(request); !parsed.ok()) return refuse(400, parsed.error().message);

  state_ = State::answering;
  ++timer_round_;  // a long poll may take as long as it needs
  timer_.cancel();
  read_more();
  auto responder = std::make_shared<ConnectionResponder>(shared_from_this());
  try {
    core_->handler(std::move(request), responder);
  } catch (const std::exception& e) {
    log::error("a request handler threw an exception", {{"method", request_.method}, {"what", e.what()}});
    responder->respond(HttpResponse::text(500, "internal error\n"));
  }
}

void Connection::refuse(int status, std::string why) {
  release_body();
  keep_alive_ = false;
  request_.method = "GET";
  request_.headers.clear();
  state_ = State::answering;
  send(HttpResponse::text(status, why + "\n"));
}

}  // namespace muster::http_server
