#include "kernels/together/group_server.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <optional>
#include <utility>

#include "kernels/together/rank_process.h"
#include "sys/log.h"

namespace muster::together {
namespace {

using kernels::seconds_now;

constexpr size_t kMostClients = 16;
constexpr double kAnswerSeconds = 20, kFirstLineSeconds = 20;
constexpr int kParentTickMilliseconds = 500;  // how soon the end of the parent is noticed

Json refusal(Loss how, const std::string& why) { return {{"error", why}, {"how", to_string(how)}}; }

class Server {
 public:
  Server(const ServeOptions& options, const Socket& listening)
      : options_(options),
        listening_(listening),
        parent_(::getppid()),
        until_(seconds_now() + options.seconds),
        alone_until_(seconds_now() + options.wait_seconds) {}

  kernels::Measurement run() {
    while (ended_.empty()) {
      round();
      if (!ended_.empty()) break;
      const double now = seconds_now();
      if (::getppid() != parent_)
        ended_ = "parent";
      else if (now >= until_)
        ended_ = "time";
      else if (!rank_ && now >= alone_until_)
        ended_ = "no leader";
    }
    kernels::Measurement out;
    out.check = "group-serve";
    out.detail = {{"bind", options_.bind}, {"port", options_.port}, {"loads", loads_}, {"ended", ended_}};
    return out;
  }

 private:
  struct Client {
    LineSocket line;
    double since = 0;
    bool spoke = false, done = false;
  };
  using Clients = std::list<Client>;

  void round() {
    // While a rank runs, connections to the port are for its members (RankProcess::start).
    std::vector<pollfd> watched = {{rank_ ? -1 : listening_.fd(), POLLIN, 0},
                                   {rank_ ? rank_->fd() : -1, POLLIN, 0}};
    for (const auto& client : clients_) watched.push_back({client.line.fd(), POLLIN, 0});
    ::poll(watched.data(), watched.size(), kParentTickMilliseconds);
    if (rank_ && watched[1].revents != 0 && !rank_->read()) answer();
    size_t at = 1;
    for (auto& client : clients_)
      if (watched[++at].revents != 0) take_from(client);
    if (rank_ && seconds_now() >= rank_until_) give_up(Loss::silent, "the load did not end in time");
    const double now = seconds_now();
    for (auto& client : clients_)
      if (!client.spoke && now - client.since > kFirstLineSeconds) client.done = true;
    for (auto i = clients_.begin(); i != clients_.end();) {
      if (i->done && leader_ == &*i) drop_rank();
      i = i->done ? clients_.erase(i) : std::next(i);
    }
    if (watched[0].revents != 0 && !rank_) accept();
  }

  void accept() {
    Socket socket = accept_one(listening_);
    if (socket.fd() < 0) return;
    tune(socket);
    LineSocket line(std::move(socket), kLongestWork);
    const auto& peers = options_.peers;
    if (std::find(peers.begin(), peers.end(), line.peer()) == peers.end() || clients_.size() >= kMostClients)
      return;
    if (!line.send(line_of({{"muster_group", kMessageVersion}}), kAnswerSeconds).ok()) return;
    clients_.push_back({std::move(line), seconds_now()});
  }

  void take_from(Client& client) {
    const bool more = client.line.read();
    while (const auto text = client.line.take()) {
      client.spoke = true;
      obey(client, *text);
    }
    // Not JSON: a member of a group whose work has not arrived at this server yet. It will retry.
    if (!more || client.line.first() != '{') client.done = true;
  }

  void obey(Client& client, const std::string& text) {
    const auto json = parse_json(text);
    if (json.ok() && json->is_object() && json->contains("bye")) {
      ended_ = "bye";
      return;
    }
    const Status begun =
        begin(client, json.ok() && json->is_object() && json->contains("work") ? (*json)["work"] : Json());
    if (begun.ok()) return;
    (void)client.line.send(line_of(refusal(Loss::refused, begun.error().message)), kAnswerSeconds);
    client.done = true;
  }

  Status begin(Client& client, const Json& json) {
    if (rank_) return fail(Code::unavailable, "it is busy with a rank of another load");
    TRY(const Work work, work_from_json(json));
    if (work.members[static_cast<size_t>(work.rank)].address != options_.bind)
      return fail(Code::invalid, "the rank belongs to a different node");
    TRY(RankProcess rank, RankProcess::start(work, options_.here, listening_));
    rank_.emplace(std::move(rank));
    rank_until_ = seconds_now() + work.deadline_seconds;
    leader_ = &client;
    ++loads_;
    return Ok{};
  }

  void answer() {
    Json result;
    const std::string broke = rank_->end(result);
    if (!broke.empty()) return give_up(Loss::died, broke);
    (void)leader_->line.send(line_of({{"result", std::move(result)}}), kAnswerSeconds);
    drop_rank();
  }

  void give_up(Loss how, const std::string& why) {
    (void)leader_->line.send(line_of(refusal(how, why)), kAnswerSeconds);
    drop_rank();
  }

  void drop_rank() {
    rank_.reset();
    leader_ = nullptr;
    alone_until_ = seconds_now() + options_.linger_seconds;
  }

  const ServeOptions& options_;
  const Socket& listening_;
  const pid_t parent_;
  const double until_;
  double alone_until_, rank_until_ = 0;
  Clients clients_ = {};
  std::optional<RankProcess> rank_ = {};
  Client* leader_ = nullptr;  // whose rank it is
  int loads_ = 0;
  std::string ended_ = {};
};

}  // namespace

kernels::Measurement serve_group_at(const ServeOptions& options, const Socket& listening) {
  return Server(options, listening).run();
}

kernels::Measurement serve_group(const ServeOptions& options) {
  const auto listening = listen_at(options.bind, options.port);
  if (listening.ok()) return serve_group_at(options, listening->socket);
  kernels::Measurement out;
  out.check = "group-serve";
  out.outcome = kernels::Outcome::unavailable;
  out.error = listening.error().message;
  return out;
}

}  // namespace muster::together
