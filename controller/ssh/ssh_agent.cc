#include "controller/ssh/ssh_agent.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/digest.h"

namespace muster {
namespace {

// draft-miller-ssh-agent, sections 3 and 5.1.
constexpr uint8_t kRequestIdentities = 11, kIdentities = 12;
constexpr size_t kLongest = 256 << 10;

bool read_all(int fd, char* to, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t n = ::read(fd, to + done, size - done);
    if (n <= 0 && !(n < 0 && errno == EINTR)) return false;
    done += n > 0 ? static_cast<size_t>(n) : 0;
  }
  return true;
}

bool write_all(int fd, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = ::send(fd, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (n <= 0 && !(n < 0 && errno == EINTR)) return false;
    done += n > 0 ? static_cast<size_t>(n) : 0;
  }
  return true;
}

uint32_t number_at(const std::string& text, size_t at) {
  uint32_t out = 0;
  for (size_t i = 0; i < 4; ++i) out = out << 8 | static_cast<unsigned char>(text[at + i]);
  return out;
}

std::string number(size_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
  return out;
}

std::string framed(const std::string& body) { return number(body.size()) + body; }

// Returns one message without its length prefix; none at the end of the stream.
std::optional<std::string> receive(int fd) {
  std::string head(4, '\0');
  if (!read_all(fd, head.data(), head.size())) return std::nullopt;
  const uint32_t size = number_at(head, 0);
  if (size == 0 || size > kLongest) return std::nullopt;
  std::string body(size, '\0');
  if (!read_all(fd, body.data(), body.size())) return std::nullopt;
  return body;
}

struct Identity {
  std::string key, comment;
};

std::optional<std::vector<Identity>> identities_in(const std::string& answer) {
  if (answer.size() < 5 || static_cast<uint8_t>(answer[0]) != kIdentities) return std::nullopt;
  size_t at = 5;
  const auto text = [&](std::string& out) {
    if (answer.size() - at < 4) return false;
    const uint32_t size = number_at(answer, at);
    if (answer.size() - at - 4 < size) return false;
    out = answer.substr(at + 4, size);
    at += 4 + size;
    return true;
  };
  std::vector<Identity> out;
  for (uint32_t left = number_at(answer, 1); left > 0; --left) {
    Identity one;
    if (!text(one.key) || !text(one.comment)) return std::nullopt;
    out.push_back(std::move(one));
  }
  return out;
}

Result<int> connect_to_agent() {
  const char* path = std::getenv("SSH_AUTH_SOCK");
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (!path || !*path) return fail(Code::unavailable, "no SSH agent: SSH_AUTH_SOCK is not set");
  if (std::strlen(path) >= sizeof to.sun_path)
    return fail(Code::unavailable, "no SSH agent: the path in SSH_AUTH_SOCK is too long for a socket");
  std::strcpy(to.sun_path, path);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && ::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) return fd;
  const std::string why = std::strerror(errno);
  if (fd >= 0) ::close(fd);
  return fail(Code::unavailable, "no SSH agent at SSH_AUTH_SOCK (" + std::string(path) + "): " + why);
}

class View : public SshAgentView {
 public:
  View(int agent, int inner, int outer) : agent_(agent), inner_(inner), outer_(outer) {
    thread_ = std::thread([this] { serve(); });
  }
  ~View() override {
    ::shutdown(inner_, SHUT_RDWR);
    ::shutdown(agent_, SHUT_RDWR);
    thread_.join();
    for (const int fd : {agent_, inner_, outer_})
      if (fd >= 0) ::close(fd);
  }
  int socket() override { return std::exchange(outer_, -1); }
  void show(const std::string& key) override {
    const std::lock_guard hold(mutex_);
    shown_ = key;
  }

 private:
  void serve() {
    for (;;) {
      const auto requested = receive(inner_);
      if (!requested || !write_all(agent_, framed(*requested))) return;
      auto answer = receive(agent_);
      if (!answer) break;
      if (static_cast<uint8_t>((*requested)[0]) == kRequestIdentities) answer = only_shown(*answer);
      if (!write_all(inner_, framed(*answer))) return;
    }
    ::shutdown(inner_, SHUT_RDWR);  // the agent has ended, so libssh must not wait
  }
  std::string only_shown(const std::string& answer) {
    const auto all = identities_in(answer);
    if (!all) return answer;
    const std::lock_guard hold(mutex_);
    std::string shown;
    size_t count = 0;
    for (const auto& one : *all) {
      if (count > 0 || to_base64(one.key) != shown_) continue;
      shown += framed(one.key) + framed(one.comment);
      ++count;
    }
    return static_cast<char>(kIdentities) + number(count) + shown;
  }

  const int agent_, inner_;
  int outer_;
  std::mutex mutex_;
  std::string shown_;  // under mutex_
  std::thread thread_;
};

}  // namespace

Result<std::vector<std::string>> ssh_agent_keys() {
  TRY(const int fd, connect_to_agent());
  // A forwarded agent whose session has ended never responds. Only a signature may wait for the user (to
  // touch a security key), so a limit on this request is safe.
  const timeval patience = {15, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  std::optional<std::string> answer;
  if (write_all(fd, framed(std::string(1, static_cast<char>(kRequestIdentities))))) answer = receive(fd);
  ::close(fd);
  const auto found = answer ? identities_in(*answer) : std::nullopt;
  if (!found) return fail(Code::unavailable, "the SSH agent at SSH_AUTH_SOCK did not list its keys");
  std::vector<std::string> keys;
  for (const auto& one : *found) keys.push_back(to_base64(one.key));
  return keys;
}

Result<std::unique_ptr<SshAgentView>> SshAgentView::open() {
  TRY(const int agent, connect_to_agent());
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    ::close(agent);
    return fail(Code::failed,
                "cannot create a socket pair for the SSH agent: " + std::string(std::strerror(errno)));
  }
  return std::unique_ptr<SshAgentView>(std::make_unique<View>(agent, pair[0], pair[1]));
}

}  // namespace muster
