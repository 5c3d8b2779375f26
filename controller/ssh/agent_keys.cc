#include "controller/ssh/agent_keys.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>

namespace muster {
namespace {

constexpr char kListKeys = 11, kKeys = 12;
constexpr size_t kLongest = 1 << 20;  // of a message
constexpr char kFailure[] = "\x05";

std::string number(size_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
  return out;
}

// The number at `at`, which moves behind it.
std::optional<size_t> take_number(const std::string& text, size_t& at) {
  if (text.size() < at + 4) return std::nullopt;
  size_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(text[at++]);
  return value;
}

bool send_all(int fd, const std::string& text) {
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t n = ::send(fd, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    sent += static_cast<size_t>(n);
  }
  return true;
}

bool read_all(int fd, std::string& into, size_t size) {
  into.assign(size, '\0');
  for (size_t have = 0; have < size;) {
    const ssize_t n = ::read(fd, into.data() + have, size - have);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    have += static_cast<size_t>(n);
  }
  return true;
}

std::optional<std::string> read_message(int fd) {
  std::string head, body;
  size_t at = 0;
  if (!read_all(fd, head, 4)) return std::nullopt;
  const size_t size = take_number(head, at).value_or(0);
  if (size == 0 || size > kLongest || !read_all(fd, body, size)) return std::nullopt;
  return body;
}

bool send_message(int fd, const std::string& body) { return send_all(fd, number(body.size()) + body); }

// One question and its answer, on a connection of its own.
std::optional<std::string> ask(const std::string& path, const std::string& question) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return std::nullopt;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::nullopt;
  std::optional<std::string> answer;
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      send_message(fd, question))
    answer = read_message(fd);
  ::close(fd);
  return answer;
}

void serve(int fd, const std::string& path, const std::string& list) {
  while (const auto question = read_message(fd)) {
    const bool asks_for_list = (*question)[0] == kListKeys;
    if (!send_message(fd, asks_for_list ? list : ask(path, *question).value_or(kFailure))) break;
  }
  ::close(fd);
}

}  // namespace

Result<AgentKeys> AgentKeys::open() {
  AgentKeys out;
  const char* path = std::getenv("SSH_AUTH_SOCK");
  if (path == nullptr || *path == '\0') return fail(Code::not_found, "SSH_AUTH_SOCK names no agent");
  out.path_ = path;
  const auto answer = ask(out.path_, std::string(1, kListKeys));
  if (!answer) return fail(Code::not_found, "no SSH agent answers at " + out.path_);
  const Error wrong = fail(Code::failed, "the SSH agent at " + out.path_ + " gave no list of its keys");
  size_t at = 1;
  const auto count = take_number(*answer, at);
  if ((*answer)[0] != kKeys || !count) return wrong;
  for (size_t i = 0; i < *count; ++i) {
    const size_t begin = at;
    for (int field = 0; field < 2; ++field) {
      const auto size = take_number(*answer, at);
      if (!size || *size > answer->size() - at) return wrong;
      at += *size;
    }
    out.keys_.push_back(answer->substr(begin, at - begin));
  }
  return out;
}

Result<int> AgentKeys::offer(size_t first, size_t many) const {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return fail(Code::failed, std::string("socketpair: ") + std::strerror(errno));
  const size_t last = std::min(keys_.size(), first + many);
  std::string list = std::string(1, kKeys) + number(last > first ? last - first : 0);
  for (size_t i = first; i < last; ++i) list += keys_[i];
  std::thread([fd = ends[1], path = path_, list] { serve(fd, path, list); }).detach();
  return ends[0];
}

}  // namespace muster
