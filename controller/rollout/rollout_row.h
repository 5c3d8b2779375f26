// All state of a rollout: one row. The rest is in runs and their journals. Each change is a function from one
// row to the next, so that a controller that was killed continues with one or the other. Pure.
//
// In order, for each batch: with_batch() is stored; the run is started, and carries the rollout's id and the
// batch's number; with_run() is stored; the run ends; judged() is stored. A controller that finds a batch
// without a run looks for the run with these numbers: with_run() where there is one, without_batch() where
// there is none. So no batch runs twice.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"

namespace muster::rollout {

struct Answer;
struct View;

enum class Stage { canary, batches, stopped, done };
enum class StopReason {
  none,
  canary_failed,   // a node of a canary batch failed
  budget,          // more nodes failed than Policy::failure_budget
  target_changed,  // the images or the policy are not those approved
  no_canary,       // no image has a node that could be its canary
  replaced         // another one was approved before it was done
};

// Of a node that this rollout took and that was not accepted. It is not tried again.
struct Failure {
  std::string reason;
  int64_t run = 0;
  bool canary = false;
  bool returned = false;  // at work again in its old slot; false: quarantined, or its state is unknown
};
// Given back unchanged. It is tried again on a later night.
struct Postponed {
  std::string reason;
  int64_t run = 0, night = 0;  // the last ones
  int times = 0;               // at least 1
  bool cancelled = false;      // its run was cancelled
  bool refused = false;        // its plan was refused, and nothing was done; neither: its jobs did not end
};
struct Underway {
  int64_t number = 0;  // from 1
  int64_t run = 0;     // 0: not known to have been started
  bool canary = false;
  std::map<std::string, std::string> images;  // node -> digest that it gets
};

struct Row {
  int64_t id = 0;
  std::string target;  // View::target when it was approved
  Stage stage = Stage::canary;
  StopReason stop = StopReason::none;  // of stage `stopped`
  bool paused = false;                 // by an operator, or because its run was cancelled; survives the night
  int64_t batches = 0;                 // begun
  std::optional<Underway> batch;
  std::map<std::string, int> proven;           // image digest -> canaries that were accepted with it
  std::map<std::string, Failure> failed;       // by node, as the next ones
  std::map<std::string, Postponed> postponed;  // also of those that came through later
  std::map<std::string, int64_t> done;         // -> run
};

// The result of a run for one node.
enum class Outcome {
  accepted,     // at work with the new image, also `degraded`
  returned,     // back at work in its old slot
  quarantined,  // by the run, or its state is unknown
  held,         // an operator quarantined it meanwhile: not a failure of the image
  jobs,         // its jobs did not end within drain_timeout: given back, without a reboot
  not_begun,    // the run's budget was used up before its turn: as it was
  unfinished    // the run was cancelled before the node was accepted
};
struct NodeEnd {
  Outcome outcome = Outcome::quarantined;
  std::string reason = {};
};
struct RunEnd {
  int64_t run = 0;
  int64_t night = 0;  // View::night now
  bool cancelled = false;
  std::map<std::string, NodeEnd> nodes;
};

// The first row of a rollout.
Row begun(int64_t id, const std::string& target);
// `start` on a later night, or again: a rollout that was done is checked again, all counts are kept.
// conflict: it was stopped, or has a different target; that needs a new rollout, with a canary.
Result<Row> started_again(Row row, const std::string& target);
// The batch of an Answer `run` is about to begin.
Row with_batch(Row row, const View& view, const Answer& answer);
// conflict: there is no batch, or it has another run.
Result<Row> with_run(Row row, int64_t run);
// The run of the batch was never started: nothing happened to its nodes. conflict: there is no batch, or it
// has a run.
Result<Row> without_batch(Row row);
// The planner refused these nodes, for these reasons: they are left out for this night.
Row refused_in(Row row, const std::map<std::string, std::string>& reasons, int64_t night);
// The batch's run ended. A node of the batch that `end` does not name counts as failed; a cancelled run
// pauses the rollout. conflict: no batch is under way, or it has another run.
Result<Row> judged(Row row, const RunEnd& end);
// What an Answer means for the rollout as a whole: stopped, done, or which stage.
Row with_answer(Row row, const Answer& answer);

}  // namespace muster::rollout
