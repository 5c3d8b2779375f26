// The state of a rollout: one row. Everything else is in its runs and their journals. Each change is a
// function from one row to the next, so a controller that was killed continues from one of the two. No I/O.
// For each batch, in order: store with_batch(); start the run, tagged with the rollout's id and the batch's
// number; store with_run(); the run ends; store judged(). A restarted controller that finds a batch without a
// run looks for a run with that tag, and continues with with_run() if there is one, else with
// without_batch(). So no batch runs twice.
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
  canary_failed,   // a canary of each image that nodes still need failed
  budget,          // more nodes failed than Policy::failure_budget
  target_changed,  // the images or the policy are not those approved
  no_canary,       // only in rows of earlier versions: now such nodes are left
  replaced         // a newer rollout was approved before this one was done
};

// A node of a batch that was not accepted. This rollout does not try it again.
struct Failure {
  std::string reason;
  int64_t run = 0;
  bool canary = false;
  bool returned = false;  // in service again in its old slot; false: quarantined or unknown
};
// A node that was returned to service unchanged. It is tried again in a later window.
struct Postponed {
  std::string reason;
  int64_t run = 0, night = 0;  // of the last attempt
  int times = 0;               // at least 1
  bool cancelled = false;      // its run was cancelled
  bool refused = false;  // its plan was refused; if neither is set: its jobs did not end, or it was left
};
// An image whose canary failed: no node gets it until a new approval, not even if it is built again.
struct HeldImage {
  std::string node, reason;  // of the canary
  std::string digest;        // what it was to get; of an earlier build if the image was built again
  int64_t run = 0;
};
struct Underway {
  int64_t number = 0;  // from 1
  int64_t run = 0;     // 0: not started, as far as is known
  bool canary = false;
  std::map<std::string, std::string> images;  // node -> digest of the image to install
};

struct Row {
  int64_t id = 0;
  std::string target;  // View::target when it was approved
  Stage stage = Stage::canary;
  StopReason stop = StopReason::none;  // of stage `stopped`
  bool paused = false;  // by an operator, or because its run was cancelled; outlasts the window
  int64_t batches = 0;  // batches begun so far
  std::optional<Underway> batch;
  std::map<std::string, int> proven;           // image digest -> canaries that were accepted with it
  std::map<std::string, Failure> failed;       // by node, as are `postponed` and `done`
  std::map<std::string, Postponed> postponed;  // includes nodes that were accepted later
  std::map<std::string, int64_t> done;         // node -> run
  std::map<std::string, HeldImage> held;       // by image digest
};

enum class Outcome {
  accepted,     // in service with the new image, also if `degraded`
  returned,     // in service again in its old slot
  quarantined,  // by the run, or its state is unknown
  held,         // an operator quarantined it during the run: not a failure of the image
  jobs,         // its jobs did not end within drain_timeout: returned to service without a reboot
  left,         // others took it out of its scheduler: left to them, without a reboot
  not_begun,    // the run's failure budget was used up before its turn: unchanged
  unfinished    // the run was cancelled before the node was accepted
};
struct NodeEnd {
  Outcome outcome = Outcome::quarantined;
  std::string reason = {};
};
struct RunEnd {
  int64_t run = 0;
  int64_t night = 0;  // current View::night
  bool cancelled = false;
  std::map<std::string, NodeEnd> nodes;
  // Node of the next batch -> why its slot was not written ahead.
  std::map<std::string, std::string> unwritten = {};
};

Row begun(int64_t id, const std::string& target);
// Nodes whose failure counts against the failure budget: a failed canary holds its image instead.
int failures_of(const Row& row);
// Returns the row after another `start`, in the same or a later window: a rollout that was done, or had
// only nodes of held images left, is checked again; counts are kept. Code::conflict: stopped for another
// reason, or a different target: a new rollout is required.
Result<Row> started_again(Row row, const std::string& target);
// `answer`: a `run` answer, whose batch is about to begin.
Row with_batch(Row row, const View& view, const Answer& answer);
// Code::conflict: there is no batch, or it has a different run.
Result<Row> with_run(Row row, int64_t run);
// Returns the row without its batch, whose run was never started, so that nothing happened to its nodes.
// Code::conflict: there is no batch, or it has a run.
Result<Row> without_batch(Row row);
// Returns the row after the planner refused these nodes (node -> reason): they are left out for this window.
Row refused_in(Row row, const std::map<std::string, std::string>& reasons, int64_t night);
// Returns the row after the batch's run ended. A node of the batch that `end` lacks counts as failed; a
// cancelled run pauses the rollout. Code::conflict: no batch is under way, or it has a different run.
Result<Row> judged(Row row, const RunEnd& end);
// The stage that an answer implies: stopped, done, canary or batches.
Row with_answer(Row row, const Answer& answer);

}  // namespace muster::rollout
