#include "lab/qmp.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/json_dump.h"

namespace muster::lab {
namespace {

class QmpSocket : public Qmp {
 public:
  QmpSocket(int fd, OnEvent on_event) : fd_(fd), on_event_(std::move(on_event)) {
    reader_ = std::thread([this] { read_loop(); });
  }
  ~QmpSocket() override {
    shutdown(fd_, SHUT_RDWR);
    reader_.join();
    close(fd_);
  }

  bool connected() const override { return connected_; }

  Result<Json> execute(const std::string& command, const Json& arguments, DurationMs deadline) override {
    std::unique_lock lock(mutex_);
    const auto id = ++last_id_;
    const Json message = {{"execute", command}, {"arguments", arguments}, {"id", id}};
    const auto line = dump_json(message) + "\n";
    if (!connected_ || send(fd_, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
      return fail(Code::unavailable, "QEMU has ended");
    const bool answered = changed_.wait_for(lock, std::chrono::milliseconds(deadline),
                                            [&] { return !connected_ || reply_id_ == id; });
    if (!answered) return fail(Code::timeout, "QEMU did not respond to " + command);
    if (reply_id_ != id) return fail(Code::unavailable, "QEMU ended during " + command);
    if (reply_.contains("error"))
      return fail(Code::failed, command + ": " + reply_["error"].value("desc", std::string("refused")));
    return reply_.value("return", Json::object());
  }

  Status handshake(DurationMs deadline) {
    auto reply = execute("qmp_capabilities", Json::object(), deadline);
    if (!reply) return std::move(reply).error();
    return Ok{};
  }

 private:
  void read_loop() {
    std::string buffer;
    char chunk[4096];
    for (;;) {
      const auto got = recv(fd_, chunk, sizeof chunk, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      buffer.append(chunk, static_cast<size_t>(got));
      for (size_t end; (end = buffer.find('\n')) != std::string::npos; buffer.erase(0, end + 1))
        take(parse_json(std::string_view(buffer).substr(0, end)).value_or(nullptr));
    }
    std::lock_guard lock(mutex_);
    connected_ = false;
    changed_.notify_all();
  }

  void take(Json message) {
    if (!message.is_object()) return;
    if (message.contains("event")) {
      if (on_event_) on_event_(message["event"].get<std::string>(), message.value("data", Json::object()));
      return;
    }
    if (!message.contains("id")) return;  // the greeting
    std::lock_guard lock(mutex_);
    reply_id_ = message["id"].get<uint64_t>();
    reply_ = std::move(message);
    changed_.notify_all();
  }

  const int fd_;
  const OnEvent on_event_;
  std::thread reader_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> connected_{true};
  uint64_t last_id_ = 0, reply_id_ = 0;
  Json reply_;
};

int connect_once(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return -1;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

}  // namespace

Result<std::unique_ptr<Qmp>> Qmp::connect(const std::string& path, DurationMs deadline, OnEvent on_event) {
  int fd = -1;
  for (DurationMs waited = 0; (fd = connect_once(path)) < 0 && waited < deadline; waited += 20)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  if (fd < 0) return fail(Code::unavailable, "QEMU's control socket " + path + " does not answer");
  auto qmp = std::make_unique<QmpSocket>(fd, std::move(on_event));
  TRY_(qmp->handshake(deadline));
  return std::unique_ptr<Qmp>(std::move(qmp));
}

}  // namespace muster::lab
