// LinkHub: the controller's end of the agent link. Orders on offer per node, agents that wait for them (long
// poll), and event batches on their way in.
//
// Secrets named in an order are filled in by this class only, at the moment the order is handed to an
// authenticated agent. An event is forwarded once per (node, boot, incarnation, number) and acknowledged only
// after everything the executor wrote because of it is durable. An undeclared machine is offered nothing but
// `inventory`, and its messages are not kept in the live log: any machine on the provisioning network can be
// one while discovery is on. Authentication is the router's work: `node` is already verified. Thread: the
// reactor's.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/reactor.h"
#include "base/wire.h"
#include "controller/run/run_ports.h"
#include "controller/store/store.h"

namespace muster {

class LinkHub : public LinkPort {
 public:
  // Receivers of the agents' messages: the executor and the status board.
  struct Sink {
    std::function<void(const Hello&)> hello;
    std::function<void(const std::string& node, const wire::Event&)> event;
    std::function<void(const std::string& node, const Presence& present)> contact;
    // Whether this order is expected of that node now. An agent's order that is neither this nor on offer was
    // withdrawn, perhaps before a restart of the controller.
    std::function<bool(const std::string& node, const std::string& order)> expected = {};
  };
  using ResolveSecrets = std::function<Result<Json>(const Json& params)>;

  LinkHub(Reactor& reactor, Store& store, ResolveSecrets resolve);
  ~LinkHub() override;
  void connect(Sink sink) { sink_ = std::move(sink); }

  void offer(const std::string& node, wire::WorkOrder order) override;
  void withdraw(const std::string& node, const std::string& order_id) override;
  void let_go(const std::string& node, const std::string& order_id) override;

  // Answers with the orders on offer that are not in `have` and the withdrawn ones that are: at once when
  // there are any, else when one comes or after the long poll's time (empty). One waiting call per node: a
  // newer one ends the older.
  void ask(const std::string& node, std::set<std::string> have, std::function<void(wire::PollReply)> answer,
           const Presence& present = {});
  // Answers with the highest event number taken, when it is durable.
  void take(const std::string& node, wire::EventBatch batch, std::function<void(Result<uint64_t>)> answer);

  // A waiting request of this node gets an empty answer: its right to poll has changed.
  void hang_up(const std::string& node) { release(node, {}); }
  // Answers every waiting agent (shutdown).
  void close();

 private:
  static constexpr DurationMs kLongPoll = 25 * kSecond;
  struct Waiter {
    std::set<std::string> have;
    std::function<void(wire::PollReply)> answer;
    Reactor::TimerId timer = 0;
  };
  struct Stream {
    std::string boot_id, incarnation;
    uint64_t taken = 0;                 // forwarded up to here
    uint64_t durable = 0;               // and written up to here: what may be acknowledged
    std::vector<Write> unwritten = {};  // rows of events that were forwarded, whose write failed
  };

  bool take_off(const std::string& node, const std::string& order_id);  // false: it was not on offer
  wire::PollReply news(const std::string& node, const std::set<std::string>& have);
  void release(const std::string& node, wire::PollReply reply);
  void refuse(const std::string& node, const wire::WorkOrder& order, const Error& error);
  Stream& stream_of(const std::string& node, const std::string& boot_id, const std::string& incarnation);
  void forward(const std::string& node, const wire::EventBatch& batch, const wire::Event& event);

  Reactor& reactor_;
  Store& store_;
  ResolveSecrets resolve_;
  Sink sink_;
  std::map<std::string, std::map<std::string, wire::WorkOrder>> offers_;  // node -> id -> order
  std::map<std::string, Waiter> waiters_;
  std::map<std::string, std::vector<Stream>> streams_;  // per node, newest last, few
};

}  // namespace muster
