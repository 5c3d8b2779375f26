// How a group is formed: each member connects to those of lower rank, and the others connect to it. Both ends
// send a hello of 96 bytes: sender, receiver, number of members, and a digest of these with the run's token.
// A connection without a valid hello is closed unanswered, and is not counted as a member.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <list>
#include <utility>

#include "base/digest.h"
#include "kernels/common/kernels.h"
#include "kernels/together/tcp_group.h"

namespace muster::together {
namespace {

using kernels::seconds_now;

constexpr double kTryAgain = 0.1, kUnidentifiedSeconds = 10;
constexpr size_t kMostUnidentified = 64;
constexpr uint32_t kHelloMagic = 0x4d555448, kVersion = 1;

struct Hello {
  uint32_t magic, version, from, to, members, reserved;
  char digest[72];
};
static_assert(sizeof(Hello) == 96);

Hello make_hello(const std::string& token, int from, int to, size_t members) {
  Hello out = {kHelloMagic,
               kVersion,
               static_cast<uint32_t>(from),
               static_cast<uint32_t>(to),
               static_cast<uint32_t>(members),
               0,
               {}};
  const std::string digest =
      sha256(fmt::format("muster group {} {} {} {} {}", kVersion, from, to, members, token));
  digest.copy(out.digest, sizeof out.digest - 1);
  return out;
}

// A connection whose member is not known yet.
struct Candidate {
  Socket socket = {};
  int rank = -1;  // the member to which this connects; -1: an incoming connection
  double since = 0;
  bool connected = false, done = false;
  Hello hello = {};
  size_t got = 0;  // bytes of it
};

class Forming {
 public:
  Forming(const Meeting& meeting, Listening listening)
      : meeting_(meeting),
        listening_(std::move(listening)),
        deadline_(seconds_now() + meeting.seconds),
        mesh_(std::make_unique<Mesh>(meeting.members, meeting.rank, meeting.grace)),
        next_try_(meeting.members.size()),
        refused_(meeting.members.size()) {}

  Met run() {
    while (missing().reported.size() > 0) {
      if (mesh_->in_trouble() || seconds_now() >= deadline_) {
        Met out{nullptr, mesh_->give_up(missing()), {}};
        out.lost = mesh_->lost();
        return out;
      }
      connect_to_lower();
      round();
    }
    return {group_over(std::move(mesh_), meeting_.seconds), {}, {}};
  }

 private:
  size_t size() const { return meeting_.members.size(); }

  Statement missing() const {
    Statement out{true, {}};
    for (size_t r = 0; r < size(); ++r)
      if (const int rank = static_cast<int>(r); rank != meeting_.rank && !mesh_->has(rank))
        out.reported.push_back({rank, refused_[r] ? Loss::refused : Loss::absent});
    return out;
  }

  bool trying(int rank) const {
    return std::any_of(candidates_.begin(), candidates_.end(),
                       [rank](const Candidate& one) { return one.rank == rank && !one.done; });
  }

  void connect_to_lower() {
    const auto& own = meeting_.members[static_cast<size_t>(meeting_.rank)];
    for (int rank = 0; rank < meeting_.rank; ++rank) {
      const auto r = static_cast<size_t>(rank);
      if (mesh_->has(rank) || trying(rank) || seconds_now() < next_try_[r]) continue;
      next_try_[r] = seconds_now() + kTryAgain;
      auto socket = start_connect(own.address, meeting_.members[r].address, meeting_.members[r].port);
      if (!socket.ok()) continue;
      candidates_.emplace_back();
      candidates_.back().socket = std::move(*socket);
      candidates_.back().rank = rank;
      candidates_.back().since = seconds_now();
    }
  }

  // Waits for activity on new or on established connections.
  void round() {
    std::vector<pollfd> watched = {{listening_.socket.fd(), POLLIN, 0}};
    for (const auto& one : candidates_)
      watched.push_back(
          {one.socket.fd(), static_cast<short>(one.rank >= 0 && !one.connected ? POLLOUT : POLLIN), 0});
    mesh_->pump(std::min(deadline_, seconds_now() + kTryAgain), watched);
    size_t at = 0;
    for (auto& one : candidates_)
      if (watched[++at].revents != 0) advance(one);
    for (auto& one : candidates_)
      if (one.rank < 0 && seconds_now() - one.since > kUnidentifiedSeconds) one.done = true;
    candidates_.remove_if([](const Candidate& one) { return one.done; });
    if (watched.front().revents != 0) accept_all();
  }

  void accept_all() {
    while (true) {
      Socket socket = accept_one(listening_.socket);
      if (socket.fd() < 0) return;
      const auto unidentified = std::count_if(candidates_.begin(), candidates_.end(),
                                              [](const Candidate& one) { return one.rank < 0; });
      if (static_cast<size_t>(unidentified) >= kMostUnidentified + size())  // drop the oldest, to make room
        candidates_.erase(std::find_if(candidates_.begin(), candidates_.end(),
                                       [](const Candidate& one) { return one.rank < 0; }));
      candidates_.emplace_back();
      candidates_.back().socket = std::move(socket);
      candidates_.back().since = seconds_now();
      candidates_.back().connected = true;
    }
  }

  void advance(Candidate& one) {
    if (!one.connected) {
      one.connected = connect_error(one.socket) == 0 && say_hello(one, one.rank);
      one.done = !one.connected;
      if (one.done) refused_[static_cast<size_t>(one.rank)] = false;
      return;
    }
    char* const rest = reinterpret_cast<char*>(&one.hello) + one.got;
    const ssize_t n = ::recv(one.socket.fd(), rest, sizeof(Hello) - one.got, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n > 0) one.got += static_cast<size_t>(n);
    if (n > 0 && one.got < sizeof(Hello)) return;
    one.done = true;
    // The member that this one connected to closes without an answer if the token differs.
    if (one.rank >= 0 && n >= 0)
      finish(one, one.rank, n > 0);
    else if (n > 0 && could_be_member(one.hello))
      finish(one, static_cast<int>(one.hello.from), true);
  }

  bool could_be_member(const Hello& hello) const {
    return hello.magic == kHelloMagic && hello.members == size() && hello.from < size() &&
           static_cast<int>(hello.from) > meeting_.rank && !mesh_->has(static_cast<int>(hello.from));
  }

  void finish(Candidate& one, int rank, bool complete) {
    const auto r = static_cast<size_t>(rank);
    const Hello wanted = make_hello(meeting_.token, rank, meeting_.rank, size());
    refused_[r] = !complete || std::memcmp(&wanted, &one.hello, sizeof wanted) != 0;
    if (refused_[r] || (one.rank < 0 && !say_hello(one, rank))) return;
    mesh_->add(rank, std::move(one.socket));
  }

  // A new connection always accepts so few bytes without blocking.
  bool say_hello(const Candidate& one, int to) const {
    const Hello hello = make_hello(meeting_.token, meeting_.rank, to, size());
    return ::send(one.socket.fd(), &hello, sizeof hello, MSG_NOSIGNAL | MSG_DONTWAIT) ==
           static_cast<ssize_t>(sizeof hello);
  }

  const Meeting& meeting_;
  const Listening listening_;
  const double deadline_;
  std::unique_ptr<Mesh> mesh_;
  std::vector<double> next_try_;
  std::vector<bool> refused_;
  std::list<Candidate> candidates_ = {};
};

}  // namespace

Met meet(const Meeting& meeting, Listening listening) {
  if (meeting.rank < 0 || static_cast<size_t>(meeting.rank) >= meeting.members.size() ||
      meeting.members.size() > 0xffff)
    return {nullptr,
            fail(Code::invalid,
                 fmt::format("there is no rank {} among {} members", meeting.rank, meeting.members.size())),
            {}};
  return Forming(meeting, std::move(listening)).run();
}

}  // namespace muster::together
