// The server half of base/http.h: Asio for sockets, Beast for parsing requests, our own thin writing of
// responses.
//
// One io_context, a fixed pool of threads, one strand per connection: all members of Connection except the
// two atomics are touched on its strand only. Beast's own stream algorithms are not used: two erased byte
// streams (plain, TLS) carry one Connection class, which keeps this the only slow file to compile and every
// limit in sight.
#include "base/http.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <ctime>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>
#include <fmt/format.h>

#include "base/contain.h"
#include "base/log.h"
#include "base/openssl.h"

namespace muster {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using Socket = asio::generic::stream_protocol::socket;
using Strand = asio::strand<asio::io_context::executor_type>;
using Done = std::function<void(error_code, size_t)>;

constexpr size_t kHeaderLimit = 8192;
constexpr size_t kPipelineLimit = 64 << 10;
constexpr size_t kStreamBacklog = 4 << 20;
constexpr size_t kFilePiece = 256 << 10;
constexpr size_t kMaxConnections = 16384;
// Generous: a node under emulation takes seconds for a handshake.
constexpr DurationMs kHandshakeMs = 30 * kSecond;
constexpr DurationMs kHeaderMs = 30 * kSecond;
constexpr DurationMs kWriteMs = 30 * kSecond;
constexpr DurationMs kLingerMs = 2 * kSecond;
constexpr size_t kSlowestBytesPerSecond = 64 << 10;

// ---- byte streams

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  virtual Socket& socket() = 0;
  virtual SSL* tls() = 0;  // null for a plain stream
  virtual void handshake(Done done) = 0;
  virtual void read(asio::mutable_buffer into, Done done) = 0;
  virtual void write(std::array<asio::const_buffer, 2> pieces, Done done) = 0;
};

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

class Connection;

// What connections share. Outlives the server while a Responder is still held somewhere.
struct Core {
  HttpServerOptions options;
  HttpHandler handler;
  asio::io_context io;
  asio::ssl::context tls{asio::ssl::context::tls_server};

  std::mutex mutex;
  bool stopping = false;
  std::set<std::shared_ptr<Connection>> connections;
  std::map<std::string, size_t> strangers_of;  // address -> connections nobody is known behind
  size_t strangers = 0;                        // all of them
  size_t bodies = 0;                           // bytes that are being received, as announced

  // All under the mutex. False: no room.
  bool admit_stranger(const std::string& address) {
    if (!options.unix_path.empty()) return true;
    size_t& here = strangers_of[address];
    if (strangers >= options.max_strangers || here >= options.max_strangers_per_address) {
      if (here == 0) strangers_of.erase(address);
      return false;
    }
    ++here;
    ++strangers;
    return true;
  }
  void forget_stranger(const std::string& address) {
    const auto found = strangers_of.find(address);
    if (found == strangers_of.end()) return;
    --strangers;
    if (--found->second == 0) strangers_of.erase(found);
  }

  // Work from other threads. Dropped once the server stops: nobody would run it, and it would keep the core
  // alive.
  template <typename Work>
  void post(const Strand& strand, Work work) {
    std::lock_guard lock(mutex);
    if (!stopping) asio::post(strand, std::move(work));
  }
};

std::string http_date() {
  std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[64];
  std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return text;
}

// A header that would end the header block early, or start another, is dropped: handlers echo what clients
// sent.
bool clean(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
}

struct OpenFile {
  int fd = -1;
  uint64_t at = 0;
  uint64_t left = 0;

  OpenFile() = default;
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { close(); }
  void close() {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
};

// ---- connection

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<Core> core, Strand strand, Socket socket, std::string remote)
      : core_(std::move(core)),
        strand_(std::move(strand)),
        timer_(strand_),
        remote_(std::move(remote)),
        known_(!core_->options.unix_path.empty()) {
    if (core_->options.tls)
      stream_ = std::make_unique<TlsStream>(std::move(socket), core_->tls);
    else
      stream_ = std::make_unique<PlainStream>(std::move(socket));
  }

  void start() {
    asio::post(strand_, [self = shared_from_this()] {
      self->deadline(kHandshakeMs);
      self->stream_->handshake([self](error_code error, size_t) {
        if (error || self->closed_) return self->close();
        self->note_peer();
        self->next_request();
      });
    });
  }

  void close_soon() {
    asio::post(strand_, [self = shared_from_this()] { self->close(); });
  }

  // For responders, from any thread.
  template <typename Work>
  void post(Work work) {
    core_->post(strand_, [self = shared_from_this(), work = std::move(work)]() mutable {
      if (!self->closed_) work(*self);
    });
  }
  bool gone() const { return gone_; }
  // Accounts for a chunk to be streamed; false when the client is too far behind.
  bool reserve(size_t bytes) { return (backlog_ += bytes) <= kStreamBacklog; }

  // On the strand:
  void send(HttpResponse response);
  void start_stream(HttpResponse head);
  void send_chunk(std::string chunk);
  void finish_stream();
  void close();

 private:
  enum class State { header, body, answering, lingering };

  void note_peer();
  void note_known();
  HttpRequest head_request() const;
  bool reserve_body(uint64_t length);
  void release_body();
  void next_request();
  void read_more();
  void on_read(error_code error, size_t size);
  void on_data();
  void on_header(size_t size);
  void on_body();
  void check_header();
  void body_deadline();
  void dispatch();
  void refuse(int status, std::string why);
  std::string head_of(const HttpResponse& response, std::optional<uint64_t> length);
  void open_file(HttpResponse& response);
  void write(std::string head, std::string body, std::function<void()> then);
  void send_file();
  void send_file_plain();
  void send_file_tls();
  void pump_stream();
  void answered();
  void deadline(DurationMs ms);

  std::shared_ptr<Core> core_;
  Strand strand_;
  asio::steady_timer timer_;
  uint64_t timer_round_ = 0;
  std::string remote_;
  std::unique_ptr<ByteStream> stream_;
  std::string peer_, peer_serial_, peer_organization_;
  bool known_ = false;     // not a stranger
  uint64_t reserved_ = 0;  // of the budget for bodies

  State state_ = State::header;
  bool closed_ = false;
  bool reading_ = false;
  std::array<char, 16384> read_buffer_;
  std::string in_;  // received, not yet parsed
  std::optional<http::request_parser<http::string_body>> parser_;

  HttpRequest request_;  // what the answer depends on: method and Range
  bool keep_alive_ = true;
  bool http10_ = false;
  std::string out_head_, out_body_;
  OpenFile file_;
  std::vector<char> file_piece_;

  bool stream_open_ = false, stream_ending_ = false, stream_busy_ = false;
  std::deque<std::string> chunks_;
  std::atomic<size_t> backlog_ = 0;
  std::atomic<bool> gone_ = false;
};

// The handler's end of one request.
class ConnectionResponder : public Responder {
 public:
  explicit ConnectionResponder(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}
  ~ConnectionResponder() override {
    State was = state_.exchange(State::done);
    if (was == State::open)
      connection_->post(
          [](Connection& c) { c.send(HttpResponse::text(500, "the request was not answered\n")); });
    // A stream nobody will ever end: cut, so that the client does not take it for whole.
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

void Connection::close() {
  if (closed_) return;
  closed_ = gone_ = true;
  timer_.cancel();
  error_code ignored;
  stream_->socket().close(ignored);
  file_.close();
  release_body();
  std::lock_guard lock(core_->mutex);
  if (core_->connections.erase(shared_from_this()) > 0 && !known_) core_->forget_stranger(remote_);
}

void Connection::deadline(DurationMs ms) {
  if (closed_) return;
  uint64_t round = ++timer_round_;
  timer_.expires_after(std::chrono::milliseconds(ms));
  timer_.async_wait([self = shared_from_this(), round](error_code) {
    // A deadline that was moved while its expiry was already queued carries an old round.
    if (round == self->timer_round_) self->close();
  });
}

void Connection::note_peer() {
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
  core_->forget_stranger(remote_);
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
  parser_.emplace();
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
    // A client may close its sending half and still wait for the answer; an event stream has no such excuse.
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
    // Pipelined requests wait; reading on is how we learn that the client has gone.
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
  // A folded line is where two parsers disagree.
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
  if (message.count(http::field::transfer_encoding) > 0) return refuse(411, "send a Content-Length");
  if (message.count(http::field::content_length) > 1 || message.count(http::field::host) > 1)
    return refuse(400, "Content-Length and Host may be given once");
  const Trust trust =
      known_ || !core_->options.trust ? Trust::stranger : core_->options.trust(head_request());
  if (trust == Trust::known) note_known();
  const uint64_t length = parser_->content_length().value_or(0);
  if (!known_ && trust != Trust::guest && length > core_->options.max_stranger_body)
    return refuse(413, "the body is too large for somebody unknown here");
  if (length > 0 && !reserve_body(length))
    return refuse(503, "too many bodies are being received, ask again");
  state_ = State::body;
  body_deadline();
  if (message[http::field::expect] == "100-continue" && !parser_->is_done())
    return write("HTTP/1.1 100 Continue\r\n\r\n", "", [this] {
      body_deadline();
      on_body();
    });
  on_body();
}

// For the whole body, so that nobody holds a connection by sending a byte now and then.
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
  ++timer_round_;  // a long poll may take as long as it likes
  timer_.cancel();
  read_more();
  auto responder = std::make_shared<ConnectionResponder>(shared_from_this());
  try {
    core_->handler(std::move(request), responder);
  } catch (const std::exception& e) {
    log::error("a request's handler threw", {{"method", request_.method}, {"what", e.what()}});
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

std::string Connection::head_of(const HttpResponse& response, std::optional<uint64_t> length) {
  std::string_view reason =
      http::obsolete_reason(http::int_to_status(static_cast<unsigned>(response.status)));
  std::string head = fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\n", response.status, reason, http_date());
  for (const auto& [name, value] : response.headers)
    if (clean(name) && clean(value)) head += fmt::format("{}: {}\r\n", name, value);
  bool bodiless = response.status == 204 || response.status == 304 || response.status < 200;
  if (length && !bodiless) head += fmt::format("Content-Length: {}\r\n", *length);
  if (!length && http10_) keep_alive_ = false;
  if (!length && !http10_) head += "Transfer-Encoding: chunked\r\n";
  return head + (keep_alive_ ? "\r\n" : "Connection: close\r\n\r\n");
}

// Turns `response` into the head of a file's content, or into the error that it is not there.
void Connection::open_file(HttpResponse& response) {
  struct stat info;
  file_.fd = ::open(response.file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file_.fd < 0 || ::fstat(file_.fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    int status = file_.fd < 0 && (errno == ENOENT || errno == ENOTDIR) ? 404 : 500;
    file_.close();
    response = HttpResponse::text(status, "the file cannot be read\n");
    return;
  }
  auto size = static_cast<uint64_t>(info.st_size);
  file_.at = 0;
  file_.left = size;
  response.headers["Accept-Ranges"] = "bytes";
  auto range = response.status == 200 ? parse_range(request_.headers["Range"], size) : std::nullopt;
  if (!range) return;
  if (range->length == 0) {
    file_.close();
    response = HttpResponse::text(416, "no such range\n");
    response.headers["Content-Range"] = fmt::format("bytes */{}", size);
    return;
  }
  file_.at = range->first;
  file_.left = range->length;
  response.status = 206;
  response.headers["Content-Range"] =
      fmt::format("bytes {}-{}/{}", file_.at, file_.at + file_.left - 1, size);
}

void Connection::send(HttpResponse response) {
  if (response.close) keep_alive_ = false;
  if (!response.file.empty()) open_file(response);
  uint64_t length = file_.fd >= 0 ? file_.left : response.body.size();
  std::string head = head_of(response, length);
  bool bodiless = request_.method == "HEAD" || response.status == 204 || response.status == 304;
  if (bodiless) {
    file_.close();
    response.body.clear();
  }
  write(std::move(head), std::move(response.body), [this] {
    if (file_.fd >= 0)
      send_file();
    else
      answered();
  });
}

// `then` runs on the strand, while the connection lives; it may capture `this`.
void Connection::write(std::string head, std::string body, std::function<void()> then) {
  out_head_ = std::move(head);
  out_body_ = std::move(body);
  deadline(kWriteMs + static_cast<DurationMs>(out_body_.size() / kSlowestBytesPerSecond) * kSecond);
  stream_->write({asio::buffer(out_head_), asio::buffer(out_body_)},
                 [self = shared_from_this(), then = std::move(then)](error_code error, size_t) {
                   if (error)
                     self->close();
                   else if (!self->closed_)
                     then();
                 });
}

void Connection::send_file() {
  if (file_.left == 0) {
    file_.close();
    return answered();
  }
  deadline(kWriteMs);
  if (stream_->tls())
    send_file_tls();
  else
    send_file_plain();
}

void Connection::send_file_plain() {
  auto offset = static_cast<off_t>(file_.at);
  size_t piece = static_cast<size_t>(std::min<uint64_t>(file_.left, 4 * kFilePiece));
  ssize_t sent = ::sendfile(stream_->socket().native_handle(), file_.fd, &offset, piece);
  // 0: somebody made the file shorter; the client must see a short body, not a false one.
  if (sent == 0 || (sent < 0 && errno != EAGAIN && errno != EINTR)) return close();
  if (sent > 0) {
    file_.at += static_cast<uint64_t>(sent);
    file_.left -= static_cast<uint64_t>(sent);
  }
  auto go_on = [self = shared_from_this()](error_code error) {
    if (error)
      self->close();
    else if (!self->closed_)
      self->send_file();
  };
  stream_->socket().async_wait(Socket::wait_write, go_on);
}

void Connection::send_file_tls() {
  file_piece_.resize(static_cast<size_t>(std::min<uint64_t>(file_.left, kFilePiece)));
  ssize_t got = ::pread(file_.fd, file_piece_.data(), file_piece_.size(), static_cast<off_t>(file_.at));
  if (got <= 0) return close();
  file_.at += static_cast<uint64_t>(got);
  file_.left -= static_cast<uint64_t>(got);
  stream_->write({asio::buffer(file_piece_.data(), static_cast<size_t>(got)), asio::const_buffer()},
                 [self = shared_from_this()](error_code error, size_t) {
                   if (error)
                     self->close();
                   else if (!self->closed_)
                     self->send_file();
                 });
}

void Connection::start_stream(HttpResponse head) {
  // Half-closed clients get no streams: nothing would tell us when they leave.
  if (gone_) return close();
  stream_open_ = stream_busy_ = true;
  stream_ending_ = false;
  head.headers.try_emplace("Content-Type", "text/event-stream");
  head.headers.try_emplace("Cache-Control", "no-store");
  if (!head.body.empty()) {
    backlog_ += head.body.size();
    chunks_.push_back(std::move(head.body));
  }
  write(head_of(head, std::nullopt), "", [this] { pump_stream(); });
}

void Connection::send_chunk(std::string chunk) {
  chunks_.push_back(std::move(chunk));
  if (!stream_busy_) pump_stream();
}

void Connection::finish_stream() {
  stream_ending_ = true;
  if (!stream_busy_) pump_stream();
}

void Connection::pump_stream() {
  stream_busy_ = false;
  if (chunks_.empty() && !stream_ending_) {
    ++timer_round_;  // a quiet stream is not an idle connection
    timer_.cancel();
    return;
  }
  std::string body;
  bool last = stream_ending_;
  for (; !chunks_.empty(); chunks_.pop_front()) {
    const std::string& chunk = chunks_.front();
    backlog_ -= chunk.size();
    if (request_.method == "HEAD") continue;
    body += http10_ ? chunk : fmt::format("{:x}\r\n{}\r\n", chunk.size(), chunk);
  }
  if (last && !http10_ && request_.method != "HEAD") body += "0\r\n\r\n";
  stream_busy_ = true;
  write(std::move(body), "", [this, last] {
    if (!last) return pump_stream();
    stream_open_ = stream_ending_ = stream_busy_ = false;
    answered();
  });
}

void Connection::answered() {
  if (keep_alive_) return next_request();
  if (gone_) return close();
  // Closing with unread input would reset the connection and take the answer with it: wait for the client to
  // close.
  state_ = State::lingering;
  deadline(kLingerMs);
  error_code ignored;
  stream_->socket().shutdown(Socket::shutdown_send, ignored);
  read_more();
}

// ---- server

Status prepare_tls(asio::ssl::context& context, const TlsServerOptions& options) {
  SSL_CTX* native = context.native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // A resumed session is not verified again, and agents keep their connections anyway: no resumption.
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
    return fail(Code::invalid, "client certificates are required, but no CA to check them with is given");
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

// A socket file nobody listens on is left over from a crash and in the way.
void remove_stale(Address& address, const std::string& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode)) return;
  int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return;
  if (::connect(probe, address.any(), address.size) != 0 && errno == ECONNREFUSED) ::unlink(path.c_str());
  ::close(probe);
}

Result<int> listen_on(const HttpServerOptions& options) {
  TRY(Address address, address_of(options));
  bool local = !options.unix_path.empty();
  std::string where = local ? options.unix_path : fmt::format("{} port {}", options.address, options.port);
  if (local) remove_stale(address, options.unix_path);
  int fd = ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return fail(Code::unavailable, fmt::format("listening on {}: {}", where, strerror(errno)));
  int on = 1;
  if (!local) ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (local) ::fchmod(fd, 0660);  // the file is never wider than this, not even for a moment
  bool ok = ::bind(fd, address.any(), address.size) == 0 &&
            (!local || ::chmod(options.unix_path.c_str(), 0660) == 0) && ::listen(fd, 4096) == 0;
  if (ok) return fd;
  Code code = errno == EACCES || errno == EPERM ? Code::denied : Code::unavailable;
  Error error = fail(code, fmt::format("listening on {}: {}", where, strerror(errno)));
  ::close(fd);
  return error;
}

uint16_t port_of(int fd) {
  Address address;
  address.size = sizeof address.storage;
  if (::getsockname(fd, address.any(), &address.size) != 0) return 0;
  if (address.storage.ss_family == AF_INET)
    return ntohs(reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port);
  if (address.storage.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_port);
  return 0;
}

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
  return remote.find('.') != std::string::npos && remote.rfind(mapped, 0) == 0 ? remote.substr(mapped.size())
                                                                               : remote;
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
  // Ends when nothing is left to do, which is after stop(): the listener always waits until then.
  void serve() {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);  // sendfile() has no MSG_NOSIGNAL
    ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    while (!contain_exceptions("a connection", [this] { core_->io.run(); })) {
    }  // the others go on
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
      // Out of descriptors or memory: they come back when connections end.
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
      if (!core_->admit_stranger(remote_of(address))) return;
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

Result<std::unique_ptr<HttpServer>> start_http_server(HttpServerOptions options, HttpHandler handler) {
  auto core = std::make_shared<Core>();
  core->options = std::move(options);
  core->handler = std::move(handler);
  if (core->options.tls) TRY_(prepare_tls(core->tls, core->options.tls_options));
  TRY(int listener, listen_on(core->options));
  return std::unique_ptr<HttpServer>(std::make_unique<AsioServer>(std::move(core), listener));
}

}  // namespace muster
