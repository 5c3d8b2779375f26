#include "kernels/together/server_calls.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include "base/json.h"
#include "kernels/common/kernels.h"
#include "kernels/together/message.h"

namespace muster::together {
namespace {

using kernels::seconds_now;

constexpr double kCallAgain = 0.25, kOneTry = 10;

// A connection attempt in progress.
struct Attempt {
  std::optional<Socket> socket = {};  // not connected yet
  double since = 0, next = 0;
};

class Calls {
 public:
  Calls(const std::vector<Member>& members, const std::vector<int>& ranks, std::string from)
      : members_(members), from_(std::move(from)), attempts_(ranks.size()) {
    for (const int rank : ranks) {
      calls_.emplace_back();
      calls_.back().rank = rank;
      calls_.back().why = "no connection";
    }
  }

  std::vector<ServerCall> run(double seconds) {
    const double until = seconds_now() + seconds;
    const pid_t parent = ::getppid();
    while (seconds_now() < until && ::getppid() == parent &&
           std::any_of(calls_.begin(), calls_.end(), [](const ServerCall& c) { return !c.greeted; })) {
      for (size_t i = 0; i < calls_.size(); ++i)
        if (!calls_[i].greeted) begin(i);
      wait();
    }
    for (auto& call : calls_)
      if (!call.greeted) call.line = nullptr;
    return std::move(calls_);
  }

 private:
  void begin(size_t i) {
    const double now = seconds_now();
    Attempt& attempt = attempts_[i];
    if ((attempt.socket || calls_[i].line) && now - attempt.since > kOneTry)
      fail_attempt(i, Loss::absent, "");
    if (attempt.socket || calls_[i].line || now < attempt.next) return;
    attempt = {{}, now, now + kCallAgain};
    const Member& member = members_[static_cast<size_t>(calls_[i].rank)];
    auto socket = start_connect(from_, member.address, member.port);
    if (socket.ok())
      attempt.socket.emplace(std::move(*socket));
    else
      calls_[i].why = socket.error().message;
  }

  // Empty `why`: the attempt timed out.
  void fail_attempt(size_t i, Loss loss, const std::string& why) {
    calls_[i].loss = loss;
    calls_[i].why = why.empty() ? "no answer: its machine is off, or a firewall drops packets" : why;
    calls_[i].line = nullptr;
    attempts_[i].socket.reset();
    attempts_[i].next = seconds_now() + kCallAgain;
  }

  void wait() {
    std::vector<pollfd> watched;
    for (size_t i = 0; i < calls_.size(); ++i)
      watched.push_back(attempts_[i].socket ? pollfd{attempts_[i].socket->fd(), POLLOUT, 0}
                                            : pollfd{open_line(i), POLLIN, 0});
    ::poll(watched.data(), watched.size(), 100);
    for (size_t i = 0; i < calls_.size(); ++i)
      if (watched[i].revents != 0) advance(i);
  }
  int open_line(size_t i) const { return calls_[i].line && !calls_[i].greeted ? calls_[i].line->fd() : -1; }

  void advance(size_t i) {
    Attempt& attempt = attempts_[i];
    ServerCall& call = calls_[i];
    if (attempt.socket) {
      if (const int error = connect_error(*attempt.socket); error != 0)
        return fail_attempt(i, Loss::absent, std::strerror(error));
      tune(*attempt.socket);
      call.line = std::make_unique<LineSocket>(std::move(*attempt.socket), kLongestResult);
      return attempt.socket.reset();
    }
    const bool more = call.line->read();
    const auto text = call.line->take();
    const auto json = text ? parse_json(*text) : Result<Json>(fail(Code::failed, ""));
    if (json.ok() && json->is_object() && json->value("muster_group", Json()) == kMessageVersion)
      call.greeted = true;
    else if (text)
      fail_attempt(i, Loss::astray,
                   "the program that listens on its port is not a `group-serve` of this version");
    else if (!more)
      fail_attempt(i, Loss::refused, "it closed the connection: its `--peers` do not include this node");
  }

  const std::vector<Member>& members_;
  const std::string from_;
  std::vector<ServerCall> calls_ = {};
  std::vector<Attempt> attempts_;
};

}  // namespace

std::vector<ServerCall> call_servers(const std::vector<Member>& members, const std::vector<int>& ranks,
                                     const std::string& from, double seconds) {
  return Calls(members, ranks, from).run(seconds);
}

}  // namespace muster::together
