// LinkHub: the controller's end of the agent link: the orders on offer per node, the agents that wait for
// them (long poll), and incoming event batches.
//
// Only this class fills in the secrets named in an order, at the moment the order is handed to an
// authenticated agent. What agents send is checked, cleaned and limited first (controller/link/event_door.h).
// An event is forwarded once per (node, boot, incarnation, number) and acknowledged only
// after everything that the executor wrote because of it is durable. An undeclared machine is offered nothing
// but `inventory`, and its messages are not kept in the live log: while discovery is on, any machine on the
// provisioning network can register as one. The router has authenticated the agent: `node` is already
// verified. Thread: the reactor's.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/wire.h"
#include "controller/link/event_door.h"
#include "controller/link/held_back.h"
#include "controller/link/live_checks.h"
#include "controller/ports/run_ports.h"
#include "controller/ports/store.h"
#include "controller/spec/spec.h"
#include "sys/reactor.h"

namespace muster {

class LinkHub : public LinkPort {
 public:
  // Receivers of the agents' messages: the executor and the status board.
  struct Sink {
    std::function<void(const Hello&)> hello;
    std::function<void(const NodeName& node, const wire::Event&)> event;
    std::function<void(const NodeName& node, const Presence& present)> contact;
    // True if this order is expected of that node now. If an agent has an order that is neither expected nor
    // on offer, the order was withdrawn, perhaps before a restart of the controller.
    std::function<bool(const NodeName& node, const OrderId& order)> expected = {};
  };
  using ResolveSecrets = std::function<Result<Json>(const Json& params)>;

  LinkHub(Reactor& reactor, Store& store, ResolveSecrets resolve);
  ~LinkHub() override;
  // Those of the spec in effect; before, those of a spec that sets none.
  void set_limits(const EventLimits& limits) { door_.set_limits(limits); }
  void connect(Sink sink) { sink_ = std::move(sink); }

  void offer(const NodeName& node, wire::WorkOrder order) override;
  void withdraw(const NodeName& node, const OrderId& order_id) override;
  void let_go(const NodeName& node, const OrderId& order_id) override;

  // Answers with the orders on offer that `have` lacks, and those in `have` that were withdrawn: at once if
  // there are any, else as soon as there is one, or with none when the long poll times out. One waiting call
  // per node: a newer call ends the older one.
  void poll(const NodeName& node, std::set<std::string> have, std::function<void(wire::PollReply)> answer,
            Presence present = {});
  // Answers with the highest event number accepted, when it is durable. unavailable: nothing of the batch was
  // used (controller/link/event_door.h). `received`: the size of the request that brought it; what of it was
  // for nothing is worth a pause.
  void take(const NodeName& node, wire::EventBatch batch, std::function<void(Result<uint64_t>)> answer,
            size_t received = 0);
  HeldBack& held_back() { return held_back_; }

  // Presence::trusts of the node's last request to this process; "" before the first.
  std::string trusted_by(const NodeName& node) const {
    const auto found = trusts_.find(node);
    return found == trusts_.end() ? "" : found->second;
  }

  // Answers a waiting request of this node with nothing, because its right to poll has changed. What answers
  // checks that right again (controller/api/api.cc).
  void hang_up(const NodeName& node) { release(node, {}); }
  // Another system speaks for the node: it joined.
  void begin_anew(const NodeName& node);
  // Answers every waiting agent (shutdown).
  void close();
  // Checks of steps outside of runs, whose answers reach no sink.
  LiveChecks& live_checks() { return live_checks_; }

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
    uint64_t durable = 0;               // stored up to here: these may be acknowledged
    std::vector<Write> unwritten = {};  // rows of forwarded events whose write failed
  };

  bool take_off(const NodeName& node, const OrderId& order_id);  // false: it was not on offer
  wire::PollReply news(const NodeName& node, const std::set<std::string>& have);
  void release(const NodeName& node, wire::PollReply reply);
  // With the values of its secrets; not_found: one is not set; denied: reserved; invalid: too short.
  Result<wire::WorkOrder> with_secrets(const wire::WorkOrder& order) const;
  void refuse(const NodeName& node, const wire::WorkOrder& order, const Error& error);
  // What was refused of a node's events, for a line in the log and an event per hour.
  struct Refused {
    uint64_t events = 0;
    SteadyMs noted = {};
  };

  void note_refused(const NodeName& node, size_t events, const std::string& why);
  int64_t run_of(const NodeName& node, const OrderId& order) const;
  uint64_t taken_of(const NodeName& node, const wire::EventBatch& batch) const;
  Stream& stream_of(const NodeName& node, const std::string& boot_id, const std::string& incarnation);
  void forward(const NodeName& node, const wire::EventBatch& batch, const wire::Event& event);
  void deliver(const NodeName& node, const wire::Event& event);

  Reactor& reactor_;
  Store& store_;
  ResolveSecrets resolve_;
  EventDoor door_;
  HeldBack held_back_{reactor_};
  Sink sink_;
  std::map<std::string, std::map<std::string, wire::WorkOrder>> offers_;  // node -> id -> order
  std::map<std::string, Waiter> waiters_;
  std::map<std::string, std::vector<Stream>> streams_;  // per node, newest last, few
  std::map<std::string, std::string> trusts_;           // of declared nodes
  std::map<std::string, std::set<int64_t>> runs_;       // per node, of its last orders, few
  std::map<std::string, Refused> refused_;
  LiveChecks live_checks_{reactor_, *this};
};

}  // namespace muster
