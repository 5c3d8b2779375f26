// Connection's functions for sending: headers, bodies, files, streams, and the end of a connection.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <string_view>
#include <utility>

#include <boost/beast/http/status.hpp>

#include "sys/http/http.h"
#include "sys/http/http_connection.h"

namespace muster::http_server {
namespace http = boost::beast::http;

namespace {

// Opens response.file; sets status and headers for all of it, or for the part that `range` (a Range header,
// may be empty) requests. If that fails, `response` becomes an error.
void open_file(OpenFile& file, HttpResponse& response, std::string_view range) {
  struct stat info;
  file.fd = ::open(response.file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file.fd < 0 || ::fstat(file.fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    int status = file.fd < 0 && (errno == ENOENT || errno == ENOTDIR) ? 404 : 500;
    file.close();
    response = HttpResponse::text(status, "the file cannot be read\n");
    return;
  }
  auto size = static_cast<uint64_t>(info.st_size);
  file.at = 0;
  file.left = size;
  response.headers["Accept-Ranges"] = "bytes";
  const auto part = response.status == 200 ? parse_range(range, size) : std::nullopt;
  if (!part) return;
  if (part->length == 0) {
    file.close();
    response = HttpResponse::text(416, "no such range\n");
    response.headers["Content-Range"] = fmt::format("bytes */{}", size);
    return;
  }
  file.at = part->first;
  file.left = part->length;
  response.status = 206;
  response.headers["Content-Range"] = fmt::format("bytes {}-{}/{}", file.at, file.at + file.left - 1, size);
}

constexpr size_t kFilePiece = 256 << 10;
constexpr DurationMs kLingerMs = 2 * kSecond;

std::string http_date() {
  std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[64];
  std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return text;
}

// A header that would end the header block early, or start a new header, is dropped, because handlers return
// texts that clients sent.
bool clean(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
}

}  // namespace

void OpenFile::close() {
  if (fd >= 0) ::close(fd);
  fd = -1;
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

void Connection::send(HttpResponse response) {
  if (response.close) keep_alive_ = false;
  if (!response.file.empty()) open_file(file_, response, request_.headers["Range"]);
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
  // 0: the file was truncated meanwhile; the client must see a short body, not wrong content.
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
  // A client that has closed its sending half gets no stream: nothing would show when it is gone.
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
  // Closing with unread input would reset the connection and discard the answer: the client closes first.
  state_ = State::lingering;
  deadline(kLingerMs);
  error_code ignored;
  stream_->socket().shutdown(Socket::shutdown_send, ignored);
  read_more();
}

}  // namespace muster::http_server
