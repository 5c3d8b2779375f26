// One connection of the HTTP server: reads requests one after the other and sends the answer to each.
//
// All members but the two atomics are used on the connection's strand only. Its own limits (header,
// pipelining, stream backlog, deadlines) are in the two files that define its functions; Core admits
// connections and limits bodies. Beast only parses requests; its stream algorithms are not used. Lives while
// an operation is pending, or while it is in Core::connections. Internal to the server.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "sys/http/http.h"
#include "sys/http/http_core.h"
#include "sys/http/http_file.h"
#include "sys/http/http_streams.h"

namespace muster::http_server {

constexpr size_t kStreamBacklog = 4 << 20;
constexpr DurationMs kWriteMs = 30 * kSecond;
constexpr size_t kSlowestBytesPerSecond = 64 << 10;

struct RequestParser;  // contains Beast's parser, which is slow to compile

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<Core> core, Strand strand, Socket socket, std::string remote);
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
  std::unique_ptr<ByteStream> stream_;
  std::string peer_, peer_serial_, peer_organization_;
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
