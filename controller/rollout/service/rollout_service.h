// RolloutService: the loop of a rollout. Reads the state of the cluster, calls rollout::next() to decide, and
// turns each batch into an ordinary plan and an ordinary run; nothing else is done to a node.
// Its progress is one row of the store, written before and after each batch's run (rollout_row.h defines the
// order), so that a killed controller continues from it. A batch's plan must be covered by the current
// approval (approval.h); if it is not, or is refused, the node or the batch is left for this window. If none
// can be made, the rollout is paused until an operator resumes it.
// Operators' requests, such as a pause, are handled before the next batch's run begins. Operators' runs have
// priority: no batch begins during one.
// From a start until the window closes, the rollout continues automatically: when a run ends, when the spec
// changes, and every minute while it waits for nodes or storage sections. Thread: the reactor's; `done` may
// be called before the call returns.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/alive.h"
#include "base/json.h"
#include "controller/ports/store.h"
#include "controller/rollout/next.h"
#include "controller/rollout/service/rollout_port.h"
#include "sys/reactor.h"

namespace muster {

class RolloutService {
 public:
  using Done = std::function<void(Result<Json>)>;

  // `store` and `port` must outlive it.
  RolloutService(Reactor& reactor, Store& store, RolloutPort& port)
      : reactor_(reactor), store_(store), port_(port) {}
  ~RolloutService();
  RolloutService(const RolloutService&) = delete;
  RolloutService& operator=(const RolloutService&) = delete;

  // To be called when the controller has started and an active run has been resumed.
  void begin();
  // To be called when a run ended or the spec changed.
  void poke();

  // What `approve` would approve, with its digest, and what a rollout would do now. Changes nothing.
  // `canaries` as for approve().
  void plan(Done done, std::vector<std::string> canaries = {});
  struct ToApprove {
    std::string digest, by;
    std::vector<std::string> canaries = {};  // nodes that go first, also if they failed before
  };
  // conflict: `digest` is not what would be approved now, or a batch is in progress. invalid: one of
  // `canaries` cannot be a canary.
  void approve(ToApprove what, Done done);
  // Opens a window; no effect if one is open. denied: nothing is approved, the approval is no longer valid,
  // or the rollout is paused or was stopped; the message names the reason and what to do.
  void start(Done done);
  void pause(const std::string& by, Done done);
  void resume(Done done);
  // {state: "none"} before the first approval.
  void status(Done done);
  // Null before the first approval.
  const rollout::Record* record() const { return record_ ? &*record_ : nullptr; }

  static constexpr DurationMs kAgain = kMinute;

 private:
  using Work = std::function<void()>;
  bool load();
  void in_turn(Done done, std::function<void(const Done&)> work);
  void step();
  void finish_batch(const rollout::Underway& batch);
  void judge(Result<rollout::RunEnd> end);
  void choose();
  void find_ways(std::shared_ptr<SeenCluster> seen);
  void act(const SeenCluster& seen, const rollout::Answer& answer);
  void order(const SeenCluster& seen, const rollout::Answer& answer);
  void planned(const SeenCluster& seen, const rollout::Answer& answer, Result<PlannedBatch> made);
  void refused(const rollout::Answer& answer, const rollout::View& view,
               const std::vector<Refusal>& refusals);
  void begin_run(const SeenCluster& seen, const rollout::Answer& answer, const std::string& digest);
  void started(int64_t number, Result<int64_t> run);
  void hold(const std::string& why);
  void stop_for_another_target();

  Json shown_now();
  Json plan_shown(SeenCluster& seen, const std::vector<std::string>& canaries) const;
  void fill_in(SeenCluster& seen, const rollout::Row& row) const;
  bool going_on() const;
  // Writes the record, then calls `then`; if the write fails, nothing changes and the step is retried.
  void save(rollout::Record next, Work then);
  void save_for(rollout::Record next, const Done& done);
  void go_on();
  void rest();
  void later(const std::string& why);

  Reactor& reactor_;
  Store& store_;
  RolloutPort& port_;
  Alive alive_;
  bool begun_ = false, loaded_ = false;
  std::optional<rollout::Record> record_;
  bool busy_ = false, again_ = false;
  std::deque<Work> waiting_;  // operators' requests
  Reactor::TimerId timer_ = 0;
  std::vector<NodeWay> ways_;  // as last determined, for status()
  std::string trouble_;        // the error that causes the retries
};

}  // namespace muster
