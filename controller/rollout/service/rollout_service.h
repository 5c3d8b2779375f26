// RolloutService: the loop of a rollout. Reads the state of the cluster, calls rollout::next() to decide, and
// turns each batch into an ordinary plan and an ordinary run; nothing else is done to a node.
// Its progress is one row of the store, written before and after each batch's run (rollout_row.h defines the
// order), so that a killed controller continues from it. A batch's plan must be covered by the current
// approval (approval.h); if it is not, is refused, or cannot be made, the nodes that it is about are left out
// for this window.
// Operators' requests, such as a pause, are handled before the next batch's run begins. Operators' runs have
// priority: no batch begins during one.
// A window whose images are due (rebuild.h) begins with their builds, one after the other; the end of the
// window stays. If one fails, the batches begin with the image that is there; one that ended with the
// controller begins again.
// From a start until the window closes, the rollout continues automatically: when a run ends, when the spec
// changes, and every minute. When nothing more begins in a night, what came of it is noted and logged once
// (window_result.h). Thread: the reactor's; `done` may be called before the call returns.
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
#include "controller/rollout/service/rollout_window.h"
#include "sys/reactor.h"

namespace muster {

class RolloutService {
 public:
  using Done = std::function<void(Result<Json>)>;

  using BootClock = std::function<rollout::BootTime()>;
  // `store` and `port` must outlive it. `boot_clock` measures windows.
  RolloutService(Reactor& reactor, Store& store, RolloutPort& port, BootClock boot_clock)
      : reactor_(reactor), store_(store), port_(port), boot_clock_(std::move(boot_clock)) {}
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
  // Opens a window; no effect if one is open whose night is not over. denied: nothing is approved, the
  // approval is no longer valid, or the rollout is paused or was stopped; the message names the reason and
  // what to do. unavailable, conflict: the nodes cannot be read yet, or a run of other images is active; a
  // retry is safe.
  void start(WindowStart how, Done done);
  void pause(const std::string& by, Done done);
  void resume(Done done);
  // Leaves a node out of all batches to come; of `skip`, `since` is not set. invalid: no reason, a time that
  // is over, or no rollout takes the node. conflict: nothing was approved yet.
  void skip(const std::string& node, rollout::Skip skip, Done done);
  void unskip(const std::string& node, Done done);
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
  void prepare(const SeenCluster& seen);
  void begin_build(const std::string& image);
  void build_ended(const std::string& image, const Status& built);
  void note_build(const std::string& image, const std::string& error);
  void find_ways(std::shared_ptr<SeenCluster> seen);
  void act(const SeenCluster& seen, const rollout::Answer& answer);
  void order(const SeenCluster& seen, const rollout::Answer& answer);
  void planned(const SeenCluster& seen, const rollout::Answer& answer, Result<PlannedBatch> made);
  void refused(const SeenCluster& seen, const rollout::Answer& answer, const std::vector<Refusal>& refusals);
  void leave_out(const rollout::View& view, const std::vector<size_t>& nodes, const std::string& why);
  void leave_out(const rollout::View& view, const std::map<std::string, std::string>& reasons);
  void begin_run(const SeenCluster& seen, const rollout::Answer& answer, const std::string& digest);
  void started(int64_t number, Result<int64_t> run);
  void stop_for_another_target();

  Json shown_now();
  Json plan_shown(SeenCluster& seen, const std::vector<std::string>& canaries) const;
  void fill_in(SeenCluster& seen, const rollout::Row& row) const;
  bool going_on() const;
  bool must_note() const;
  bool note_result(rollout::Record& next, bool ended) const;
  rollout::Clocks clocks() const;
  void watch_clock();
  void clock_was_set(const rollout::Window& window);
  void keep(rollout::Record next);
  // Writes the record, then calls `then`; if the write fails, nothing changes and the step is retried.
  void save(rollout::Record next, Work then);
  void save_for(rollout::Record next, const Done& done);
  void go_on();
  void rest();
  void look_again();
  void later(const std::string& why);

  Reactor& reactor_;
  Store& store_;
  RolloutPort& port_;
  BootClock boot_clock_;
  Alive alive_;
  bool begun_ = false, loaded_ = false;
  std::optional<rollout::Record> record_;
  bool busy_ = false, again_ = false;
  std::deque<Work> waiting_;  // operators' requests
  Reactor::TimerId timer_ = 0, clock_timer_ = 0;
  rollout::ClockWatch clock_watch_;
  std::vector<NodeWay> ways_;  // as last determined, for status()
  std::string building_;       // the image whose build is under way; empty: none
  SteadyMs build_again_;       // no try of a build before
  std::string trouble_;        // the error that causes the retries
  std::string refused_;        // why the last start was refused: a retry is not logged again
  rollout::LastLook looked_;   // of this night
};

}  // namespace muster
