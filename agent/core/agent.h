// Agent: the node's end of the agent protocol. Sends hello, takes orders, carries each out once, reports with
// numbered events.
//
// Owned by agent/main.cc (or the simulated node, unmodified). Ports by constructor: ControllerLink (HTTPS),
// AgentJournal, WorkRunner. Promises:
//   - hello is the first event and acknowledged before the first poll for orders;
//   - one order at a time; a finished order is never run again: its result is sent again (journal); an order
//     that a restart of the agent interrupted runs again when it is offered again (orders are repeatable);
//   - the result is in the journal before it is sent; `boot_disk`, `reboot` and `power_off` are reported as
//     finished, and that report is acknowledged, BEFORE the runner carries them out, because no agent is left
//     to report afterwards;
//   - `kexec`, `boot_slot` and every departure with preconditions first prepare everything, as work that may
//     fail or be withdrawn; after that, they are departures, like those three. If the preconditions no longer
//     hold when the report is acknowledged, the order has failed after all, and that is reported instead;
//   - events are re-sent until they are acknowledged; when the buffer is full, log lines are dropped first,
//     then progress, never anything else;
//   - while the controller is unreachable, the work continues; calls are repeated with growing, jittered
//     pauses (1 s to 30 s);
//   - an order's time limit starts when it is received; when it expires, the runner is stopped and the
//     order ends as `timeout`;
//   - an order that the controller withdraws is not begun, or stops at the runner's next safe point. A
//     departure is not cancelled; `kexec` can be until it leaves: what was prepared is unloaded, even if the
//     runner was past its last safe point or success was already reported, and the order is `cancelled`. A
//     `boot_slot` that is withdrawn while it leaves is cancelled in the runner, so that a restart that still
//     comes does not start the other slot.
// Thread: the reactor's. Never: changes the machine, reads a clock of its own, ends the process.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/journal.h"
#include "agent/core/runner.h"
#include "base/alive.h"
#include "base/wire.h"
#include "sys/reactor.h"

namespace muster {

// The two calls of the protocol. Each calls back exactly once, after at most about 40 s (the transport's
// deadline), never inside the call. The link has already joined (certificate, token).
class ControllerLink {
 public:
  using Orders = std::function<void(Result<wire::PollReply>)>;
  using Acked = std::function<void(Result<uint64_t>)>;
  virtual ~ControllerLink() = default;
  // Long poll: answers at once when an order not listed in `have` is available or a listed one was withdrawn,
  // else after about 25 s (possibly with nothing).
  virtual void poll(const std::vector<std::string>& have, Orders done) = 0;
  virtual void post(const wire::EventBatch& batch, Acked done) = 0;
};

struct AgentIdentity {
  wire::Mode mode = wire::Mode::ram;
  std::string boot_id;
  std::string incarnation;   // random per process
  std::string image_digest;  // of the running system; empty in the RAM system
  std::string slot;          // root slot in use, "a" or "b"; empty in the RAM system
  std::string version;
  bool loader_skipped = false;  // the boot loader did not carry out what was set for this boot
  // True if this boot is on trial now (agent/image/own_slots.h). Called for each request, because a commit
  // ends the trial; also on threads of the link. If no function is set, the boot is not on trial.
  std::function<bool()> on_trial = {};
  uint64_t jitter_seed = 1;  // any number that differs between nodes
};

struct AgentOptions {
  size_t buffer_events = 4096;
  size_t batch_events = 256;
  DurationMs flush_delay = 300;  // delay of progress and log lines, so that several are sent together
  DurationMs backoff_first = kSecond, backoff_last = 30 * kSecond;
  DurationMs idle_poll_pause = kSecond;  // after a poll that brought nothing new
  DurationMs cancel_grace =
      30 * kSecond;  // a runner that has not stopped this long after its deadline is reported
};

class Agent {
 public:
  Agent(Reactor& reactor, ControllerLink& link, AgentJournal& journal, WorkRunner& runner,
        AgentIdentity identity, AgentOptions options = {});
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Loads the journal, queues hello, starts polling. An unreadable journal is an error, since an order could
  // then run twice.
  Status start();
  void log(const std::string& level, const std::string& text);
  // "" when idle.
  const std::string& running() const { return running_id_; }
  // For the log: unacknowledged events, time of the last successful contact.
  size_t backlog() const { return outbox_.size(); }
  SteadyMs last_contact() const { return last_contact_; }

 private:
  struct Backoff {
    DurationMs next = 0;
  };
  uint64_t emit(const std::string& order, const std::string& kind, Json data);
  void make_room();
  void schedule_post(DurationMs delay);
  void post_now();
  void on_acked(Result<uint64_t> reply);
  void schedule_poll(DurationMs delay);
  void poll_now();
  void on_orders(Result<wire::PollReply> reply);
  void stop(const std::string& order);
  bool take(const wire::WorkOrder& order);
  void begin(const wire::WorkOrder& order);
  void run_order();
  void arm_deadline(DurationMs delay);
  void on_deadline();
  // `readied`: if the order succeeded, what it prepared must be carried out or undone.
  void on_done(const std::string& order, bool readied, WorkOutcome outcome);
  void settle(const Status& status, Json result);
  void on_settled(Json finish);
  void next_order();
  void depart();
  void stay(const Status& why, Json result);
  void unload(const std::string& order);
  std::vector<std::string> have() const;
  DurationMs pause(Backoff& backoff);

  Reactor& reactor_;
  ControllerLink& link_;
  AgentJournal& journal_;
  WorkRunner& runner_;
  AgentIdentity identity_;
  AgentOptions options_;

  Alive alive_;  // callbacks that outlive the agent do nothing
  uint64_t next_seq_ = 1;
  std::deque<wire::Event> outbox_;  // not acknowledged, in order
  bool posting_ = false;
  Reactor::TimerId post_timer_ = 0, poll_timer_ = 0, deadline_timer_ = 0;
  SteadyMs post_due_, post_not_before_;
  Backoff post_backoff_, poll_backoff_;
  bool greeted_ = false;                      // hello was acknowledged
  std::map<std::string, Json> finished_;      // order -> data of its finished event
  std::map<std::string, uint64_t> reported_;  // order -> seq of its finished event while not acknowledged
  std::string running_id_;
  std::optional<wire::WorkOrder> current_;  // accepted, not settled (or settled and about to depart)
  std::optional<wire::WorkOrder> waiting_;  // offered while busy
  bool runner_busy_ = false, deadline_passed_ = false, settling_ = false;
  bool withdrawn_ = false, departing_ = false;           // the current order
  wire::OrderKind ready_kind_ = wire::OrderKind::kexec;  // kind of the order prepared last
  uint64_t random_;
  SteadyMs last_contact_;
};

}  // namespace muster
