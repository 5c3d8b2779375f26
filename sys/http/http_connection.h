// One connection of the HTTP server: reads requests one after the other and sends the answer to each.
//
// All members but the two atomics are used on the connection's strand only. Its own limits (header,
// pipelining, stream backlog, deadlines) are in the two files that define its functions; Core admits
// connections and limits bodies. Beast only parses requests; its stream algorithms are not used. Lives while
// an operation is pending, or while it is in Core::connections. Internal to the server.
#pragma once

#include <openssl/ssl.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>

#include "sys/http/http.h"

namespace muster::http_server {

namespace asio = boost::asio;
using boost::system::error_code;
using Socket = asio::generic::stream_protocol::socket;
using Strand = asio::strand<asio::io_context::executor_type>;
using Done = std::function<void(error_code, size_t)>;

// A connected socket, plain or TLS, so that there is one Connection class, and Beast's and Asio's algorithms
// are instantiated once. Buffers must stay valid until the call's `done` has run.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  virtual Socket& socket() = 0;
  virtual SSL* tls() = 0;  // null for a plain stream
  virtual void handshake(Done done) = 0;
  virtual void read(asio::mutable_buffer into, Done done) = 0;
  virtual void write(std::array<asio::const_buffer, 2> pieces, Done done) = 0;
};

std::unique_ptr<ByteStream> plain_stream(Socket socket);
// The context must outlive the stream.
std::unique_ptr<ByteStream> tls_stream(Socket socket, asio::ssl::context& context);

class Connection;

// Shared by the connections of one server; outlives it as long as a Responder exists. Options, handler and
// contexts are set before the first connection; the rest under the mutex.
struct Core {
  HttpServerOptions options;
  HttpHandler handler;
  asio::io_context io;
  asio::ssl::context tls{asio::ssl::context::tls_server};

  std::mutex mutex;
  bool stopping = false;
  std::set<std::shared_ptr<Connection>> connections;
  std::map<std::string, size_t> unknown_clients_of;  // address -> unauthenticated connections
  size_t unknown_clients = 0;                        // all of them
  size_t bodies = 0;                                 // bytes being received, by Content-Length

  // The mutex must be held. False: the limit of unauthenticated connections is reached.
  bool admit_unknown(const std::string& address) {
    if (!options.unix_path.empty()) return true;
    size_t& here = unknown_clients_of[address];
    if (unknown_clients >= options.max_unknown_clients || here >= options.max_unknown_per_address) {
      if (here == 0) unknown_clients_of.erase(address);
      return false;
    }
    ++here;
    ++unknown_clients;
    return true;
  }
  void forget_unknown(const std::string& address) {
    const auto found = unknown_clients_of.find(address);
    if (found == unknown_clients_of.end()) return;
    --unknown_clients;
    if (--found->second == 0) unknown_clients_of.erase(found);
  }

  // Posts work from other threads. Work is dropped once the server stops: it would never run, and would keep
  // the core alive.
  template <typename Work>
  void post(const Strand& strand, Work work) {
    std::lock_guard lock(mutex);
    if (!stopping) asio::post(strand, std::move(work));
  }
};

// The part still to be sent.
struct OpenFile {
  int fd = -1;  // open while there is data to send
  uint64_t at = 0;
  uint64_t left = 0;

  OpenFile() = default;
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { close(); }
  void close();
};

constexpr size_t kStreamBacklog = 4 << 20;
constexpr DurationMs kWriteMs = 30 * kSecond;
constexpr size_t kSlowestBytesPerSecond = 64 << 10;

struct RequestParser;  // contains Beast's parser, which is slow to compile

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<Core> core, Strand strand, Socket socket, std::string remote,
             uint16_t remote_port);
  ~Connection();

  void start();
  // From any thread.
  void close_soon();

  // For responders, from any thread.
  template <typename Work>
  void post(Work work) {
    core_->post(strand_, [self = shared_from_this(), work = std::move(work)]() mutable {
      if (!self->closed_) work(*self);
    });
  }
  bool gone() const { return gone_; }
  // Adds a chunk to the stream's backlog; false if the client is too far behind.
  bool reserve(size_t bytes) { return (backlog_ += bytes) <= kStreamBacklog; }

  // On the strand:
  void send(HttpResponse response);
  void start_stream(HttpResponse head);
  void send_chunk(std::string chunk);
  void finish_stream();
  void close();

 private:
  enum class State { header, body, answering, lingering };

  // http_connection_asio.cc: receiving
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
  void deadline(DurationMs ms);

  // http_answer_asio.cc: sending
  std::string head_of(const HttpResponse& response, std::optional<uint64_t> length);
  // `then` runs on the strand, while the connection lives; it may capture `this`.
  void write(std::string head, std::string body, std::function<void()> then);
  void send_file();
  void send_file_plain();
  void send_file_tls();
  void pump_stream();
  void answered();

  std::shared_ptr<Core> core_;
  Strand strand_;
  asio::steady_timer timer_;
  uint64_t timer_round_ = 0;
  std::string remote_;
  uint16_t remote_port_;
  std::unique_ptr<ByteStream> stream_;
  std::string peer_, peer_serial_, peer_organization_;
  std::optional<uint32_t> peer_uid_;
  bool known_ = false;     // authenticated
  uint64_t reserved_ = 0;  // bytes of Core's budget for bodies that this connection uses

  State state_ = State::header;
  bool closed_ = false;
  bool reading_ = false;
  std::array<char, 16384> read_buffer_;
  std::string in_;  // received, not yet parsed
  std::unique_ptr<RequestParser> parser_;

  HttpRequest request_;  // kept because the answer depends on its method and Range header
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

}  // namespace muster::http_server
