#include "kernels/together/group_leader.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/digest.h"
#include "base/json.h"
#include "base/result.h"
#include "kernels/together/socket.h"
#include "kernels/together/mesh.h"
#include "kernels/together/rank_process.h"

namespace muster::together {
namespace {

struct ServerCall {
  int rank = 0;
  std::unique_ptr<LineSocket> line = {};  // null: no connection
  bool greeted = false;
  Loss loss = Loss::absent;  // if it sent no greeting
  std::string why = {};      // "connection refused"
};

using kernels::seconds_now;

constexpr double kCallAgain = 0.25, kOneTry = 10;

struct Attempt {
  std::optional<Socket> socket = {};  // not connected yet
  double since = 0, next = 0;
};

// The connections to the members' servers: opened in parallel, each retried until the server has sent its
// greeting or the time is up.
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

// Connects to the server of each of these ranks. Returns once all have sent their greeting, after this many
// seconds, or when this process's parent has ended.
std::vector<ServerCall> call_servers(const std::vector<Member>& members, const std::vector<int>& ranks,
                                     const std::string& from, double seconds) {
  return Calls(members, ranks, from).run(seconds);
}

using kernels::Measurement;
using kernels::Outcome;
using kernels::seconds_now;

constexpr double kSendSeconds = 20, kDismissSeconds = 5;
// After the first failure: time for the other members to agree on the cause.
constexpr double kConclusionSeconds = 20;
constexpr int kTickMilliseconds = 500;

// The state of one rank: its result, or how it was lost.
struct Fate {
  std::optional<Measurement> result = {};
  std::optional<Loss> loss = {};  // seen from here
  std::string why = {};
  bool over() const { return result || loss; }
};

Measurement cannot_lead(const std::string& check, const std::string& why) {
  Measurement out;
  out.check = check;
  out.outcome = Outcome::unavailable;
  out.error = why;
  return out;
}

bool took_part(const Measurement& result) {
  return result.outcome == Outcome::measured || result.outcome == Outcome::corrupt;
}

Loss how_of(const Json& json) {
  const Json how = json.value("how", Json());
  for (const Loss one : {Loss::died, Loss::silent})
    if (how == to_string(one)) return one;
  return Loss::refused;
}

class Leader {
 public:
  Leader(Work work, const LeadOptions& options, int own)
      : work_(std::move(work)), options_(options), own_(own), fates_(work_.members.size()) {}

  Measurement run(const std::string& from, const Socket& listening) {
    std::vector<int> ranks;
    for (int r = 0; r < static_cast<int>(fates_.size()); ++r)
      if (r != own_) ranks.push_back(r);
    calls_ = call_servers(work_.members, ranks, from, options_.connect_seconds);
    for (const auto& call : calls_)
      if (!call.greeted) lose(call.rank, call.loss, call.why);
    // No rank begins if a member is missing: the servers keep waiting, so that loads of pairs can follow.
    if (!in_trouble()) begin(listening);
    if (!in_trouble() || std::any_of(fates_.begin(), fates_.end(), [](const Fate& f) { return !f.over(); }))
      wait();
    return conclude();
  }

 private:
  Fate& fate(int rank) { return fates_[static_cast<size_t>(rank)]; }
  void lose(int rank, Loss loss, const std::string& why) {
    if (!fate(rank).over()) fate(rank).loss = loss, fate(rank).why = why;
  }
  bool in_trouble() const {
    return std::any_of(fates_.begin(), fates_.end(),
                       [](const Fate& f) { return f.loss || (f.result && !took_part(*f.result)); });
  }

  void begin(const Socket& listening) {
    began_ = true;
    for (auto& call : calls_) {
      work_.rank = call.rank;
      if (const Status sent = call.line->send(line_of({{"work", to_json(work_)}}), kSendSeconds); !sent.ok())
        lose(call.rank, Loss::died, sent.error().message);
    }
    if (own_ < 0) return;
    work_.rank = own_;
    auto rank = RankProcess::start(work_, options_.here, listening);
    if (rank.ok())
      rank_.emplace(std::move(*rank));
    else
      lose(own_, Loss::died, rank.error().message);
  }

  void wait() {
    if (!began_) return;
    const pid_t parent = ::getppid();
    // Servers end a rank at this time by themselves, and report it.
    double until = seconds_now() + work_.deadline_seconds + kTickMilliseconds * 2e-3;
    bool trouble = false;
    while (::getppid() == parent && seconds_now() < until &&
           std::any_of(fates_.begin(), fates_.end(), [](const Fate& f) { return !f.over(); })) {
      round();
      if (!trouble && in_trouble())
        trouble = true, until = std::min(until, seconds_now() + kConclusionSeconds);
    }
    for (int r = 0; r < static_cast<int>(fates_.size()); ++r) lose(r, Loss::silent, "no result in time");
  }

  void round() {
    std::vector<pollfd> watched = {{rank_ ? rank_->fd() : -1, POLLIN, 0}};
    for (const auto& call : calls_)
      watched.push_back({fate(call.rank).over() ? -1 : call.line->fd(), POLLIN, 0});
    ::poll(watched.data(), watched.size(), kTickMilliseconds);
    if (watched[0].revents != 0 && !rank_->read()) {
      Json result;
      if (const std::string broke = rank_->end(result); broke.empty())
        fate(own_).result = measurement_from_json(result);
      else
        lose(own_, Loss::died, broke);
      rank_.reset();
    }
    for (size_t i = 0; i < calls_.size(); ++i)
      if (watched[i + 1].revents != 0) take_from(calls_[i]);
  }

  void take_from(ServerCall& call) {
    const bool more = call.line->read();
    const auto text = call.line->take();
    if (!text && more) return;
    if (!text) return lose(call.rank, Loss::died, "its server closed the connection");
    const auto json = parse_json(*text);
    const bool object = json.ok() && json->is_object();
    if (object && json->contains("result"))
      fate(call.rank).result = measurement_from_json((*json)["result"]);
    else if (object && json->contains("error") && (*json)["error"].is_string())
      lose(call.rank, how_of(*json), (*json)["error"].get<std::string>());
    else
      lose(call.rank, Loss::astray, "it sent an invalid result");
  }

  // Returns the measurement of rank 0, if it took part. Otherwise the result names the cause: ranks that this
  // node saw fail, since the others have no result because of them; else those that the members agreed on;
  // else those that did not respond.
  Measurement conclude() {
    if (fates_[0].result && took_part(*fates_[0].result)) return finished(std::move(*fates_[0].result));
    const auto ended = [](const Fate& f) { return f.loss && *f.loss != Loss::silent; };
    if (std::any_of(fates_.begin(), fates_.end(), ended)) return seen_from_here(ended);
    for (auto& one : fates_)
      if (one.result && !one.result->faulty_parts.empty()) return broken_off(std::move(*one.result));
    const auto silent = [](const Fate& f) { return f.loss.has_value(); };
    if (std::any_of(fates_.begin(), fates_.end(), silent)) return seen_from_here(silent);
    return finished(std::move(*fates_[0].result));
  }

  Measurement finished(Measurement out) const {
    out.detail["network"] = "TCP";
    out.detail["leader"] = options_.self;
    return out;
  }
  // The members did run the load, so one that never connected to the others is `failed`, not `unavailable`.
  Measurement broken_off(Measurement out) const {
    if (out.outcome == Outcome::unavailable && out.detail.contains("lost")) out.outcome = Outcome::failed;
    out.metrics.clear();
    return finished(std::move(out));
  }

  Measurement seen_from_here(const std::function<bool(const Fate&)>& counts) const {
    Measurement out;
    out.check = work_.load;
    out.outcome = Outcome::failed;
    out.detail["lost"] = Json::array();
    for (size_t r = 0; r < fates_.size(); ++r) {
      const Fate& one = fates_[r];
      if (!counts(one)) continue;
      const std::string& name = work_.members[r].name;
      out.faulty_parts.push_back(fmt::format("rank {} on {}", r, name));
      out.detail["lost"].push_back(
          {{"rank", r}, {"name", name}, {"how", to_string(*one.loss)}, {"why", one.why}});
      if (out.error.empty()) out.error = fmt::format("{} ({}): {}", name, work_.members[r].address, one.why);
    }
    return finished(std::move(out));
  }

  Work work_;
  const LeadOptions& options_;
  const int own_;
  std::vector<Fate> fates_;
  std::vector<ServerCall> calls_ = {};
  std::optional<RankProcess> rank_ = {};
  bool began_ = false;
};

int rank_of(const LeadOptions& options) {
  const auto& members = options.work.members;
  const auto own = std::find_if(members.begin(), members.end(),
                                [&](const Member& member) { return member.name == options.self; });
  return own == members.end() ? -1 : static_cast<int>(own - members.begin());
}
std::string address_of(const LeadOptions& options, int own) {
  return options.bind.empty() && own >= 0 ? options.work.members[static_cast<size_t>(own)].address
                                          : options.bind;
}

}  // namespace

Measurement lead_group(const LeadOptions& options) {
  Work work = options.work;
  const int own = rank_of(options);
  const std::string from = address_of(options, own);
  if (from.empty())
    return cannot_lead(work.load, "this node is not a member, so its address must be given with `--bind`");
  work.token = random_hex(16);
  // The same checks as on the servers, so that invalid work is reported immediately.
  work.rank = 0;
  if (const auto fine = work_from_json(to_json(work)); !fine.ok()) {
    Measurement out = cannot_lead(work.load, fine.error().message);
    out.outcome = Outcome::refused;
    return out;
  }
  Listening listening;
  if (own >= 0) {
    auto made = listen_at(from, work.members[static_cast<size_t>(own)].port);
    if (!made.ok()) return cannot_lead(work.load, made.error().message);
    listening = std::move(*made);
  }
  return Leader(std::move(work), options, own).run(from, listening.socket);
}

Measurement dismiss_group(const LeadOptions& options) {
  const int own = rank_of(options);
  const std::string from = address_of(options, own);
  if (from.empty())
    return cannot_lead("group", "this node is not a member, so its address must be given with `--bind`");
  std::vector<int> ranks;
  for (int r = 0; r < static_cast<int>(options.work.members.size()); ++r)
    if (r != own) ranks.push_back(r);
  Measurement out;
  out.check = "group";
  out.detail["ended"] = Json::array();
  const double seconds = std::min(options.connect_seconds, kDismissSeconds);
  for (auto& call : call_servers(options.work.members, ranks, from, seconds))
    if (call.greeted && call.line->send(line_of({{"bye", true}}), kSendSeconds).ok())
      out.detail["ended"].push_back(options.work.members[static_cast<size_t>(call.rank)].name);
  return out;
}

}  // namespace muster::together
