// A rollout as stored (RolloutRow::text): the current approval, the rollout's progress under it, the data for
// its report, and what outlives it: what rollouts did with each node, and skips. An approval, and the first
// start with other images under it, begin a new record. Only the newest one is in effect. Pure functions, no
// I/O.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/record.h"
#include "controller/rollout/approval.h"
#include "controller/rollout/window_result.h"
#include "controller/rollout/rollout_row.h"
#include "controller/rollout/window.h"

namespace muster::rollout {

inline constexpr Words<Stage, 4> kStages = {{{Stage::canary, "canary"},
                                             {Stage::batches, "batches"},
                                             {Stage::stopped, "stopped"},
                                             {Stage::done, "done"}}};
inline constexpr Words<StopReason, 6> kStopReasons = {{{StopReason::none, ""},
                                                       {StopReason::canary_failed, "canary-failed"},
                                                       {StopReason::budget, "budget"},
                                                       {StopReason::target_changed, "target-changed"},
                                                       {StopReason::no_canary, "no-canary"},
                                                       {StopReason::replaced, "replaced"}}};
MUSTER_WORDS(Stage, kStages)
MUSTER_WORDS(StopReason, kStopReasons)

MUSTER_RECORD(Failure, reason, run, canary, returned)
MUSTER_RECORD(Postponed, reason, run, night, times, cancelled, refused)
MUSTER_RECORD(Underway, number, run, canary, images)
MUSTER_RECORD(HeldImage, node, reason, digest, run)
MUSTER_RECORD(Row, id, target, stage, stop, paused, batches, batch, proven, failed, postponed, done,
              sparse(held))

// JSON on one line. Equal rows give equal text.
std::string to_text(const Row& row);
// Code::corrupt: the text was not written by to_text(), or was written by a later version.
Result<Row> row_from_text(const std::string& text);

std::string_view to_string(Stage stage);
std::string_view to_string(StopReason reason);

// A batch for which a run was started.
struct BatchRun {
  int64_t number = 0, run = 0;
  bool canary = false;
  std::map<std::string, std::string> images = {};  // node -> digest of the image to install
};

// A node that an operator leaves out of rollouts although it is in service. Approvals and builds do not end
// it.
struct Skip {
  std::string reason, by;
  TimeMs since = 0, until = 0;  // until 0: until an operator ends it
};

// What rollouts did with a node. All but `accepted_in` ends when the node is accepted with another image,
// by a rollout or by hand.
struct Past {
  int64_t accepted_in = 0;               // the rollout that last gave it an image
  int64_t tried_in = 0;                  // the last rollout in which it had its turn
  int postponed = 0;                     // times that it was returned to service unchanged, by its own doing
  int failed = 0;                        // times
  std::string before = {}, digest = {};  // of the last time: image that it ran, and that it was to get
  std::string reason = {};               // why it did not get it
  int64_t run = 0;                       // 0: its plan was refused
  TimeMs time = 0;
};

// A node that a rollout failed on and that went back to its previous system, which works.
struct Returned {
  std::string before, reason;  // digest of that system's image; why it failed
};

struct Record {
  int64_t id = 0;
  Approval approval;
  std::optional<Row> row;         // none: approved, but not started yet
  TimeMs started = 0, ended = 0;  // time of the first start; when done or stopped (0: neither)
  int64_t night = 0;              // number of starts under this approval
  TimeMs window_until = 0;        // end of the last start's window, for display (end_of())
  std::string why_paused;         // set while Row::paused
  std::vector<BatchRun> runs = {};
  std::map<std::string, std::string> before = {};  // node -> digest of its image before its batch
  // node -> why it waits or is left out, as of the last check: a Reason, or "REASON: text"
  std::map<std::string, std::string> left = {};
  std::map<std::string, std::string> images = {};  // of the row's target: name -> digest
  std::map<std::string, Returned> returned = {};   // by node, of earlier rollouts under this approval
  std::map<std::string, Past> past = {};           // by node
  std::map<std::string, Skip> skips = {};          // by node; may hold ones that are over
  Window window = {};                              // of the last start; length 0: before it was recorded
  std::optional<WindowResult> last_window = {};    // of this or an earlier record
};

// The record of a new approval. What the one before held, or failed, does not count any more.
Record approved(const Record& before, Approval approval);
// The record with which a start goes on, for these images: the same one, or, with an id of its own, that of
// a rollout of other images under the same approval. An image that was held still is, also if it was built
// again.
Record at_start(const Record& record, const Approval& now, const std::string& target);
// The record of a night that first builds the images `due`, from the one that a start `opened` behind
// `before`. It has an id of its own, because its images may change, and goes on with the row if they do not.
// Code::conflict: a batch is under way; it ends, and a retry is safe.
Result<Record> with_builds(const Record& before, Record opened, const std::vector<std::string>& due);
// Returns the record when all builds have ended, maybe none with a new image: batches of `now` may begin.
Record after_builds(Record record, const Approval& now, const std::string& target);
// As the functions of the same names (rollout_row.h), and what is remembered of the batch's nodes.
Record with_batch(Record record, const View& view, const Answer& answer);
Record refused_in(Record record, const View& view, const std::map<std::string, std::string>& reasons,
                  TimeMs now);
Result<Record> judged(Record record, RunEnd end, TimeMs now);  // sets RunEnd::night

// Fills in the part of the view that the record has: `night`, and the nodes' past and skips.
void recall(View& view, const Record& record, TimeMs now);
// Nodes that this or an earlier rollout under the approval failed on, canaries not counted. Each applies as
// long as the node runs the image `before`.
std::map<std::string, Returned> returned_nodes(const Record& record);
// By name: Row::held.
std::map<std::string, HeldImage> held_images(const Record& record);

// Value of Node::skipped.
bool is_skipped(const Record& record, const std::string& node, TimeMs now);

// Returns the tag with which RunRow::approved_by of a batch's run begins: "rollout 3/2, approved by NAME".
std::string run_tag(int64_t rollout, int64_t batch);
bool has_tag(const std::string& approved_by, const std::string& tag);

// "approved", "canary", "batches", "paused", "stopped" or "done".
std::string state_of(const Record& record);
inline constexpr std::array<std::string_view, 6> kRecordStates = {"approved", "canary",  "batches",
                                                                  "paused",   "stopped", "done"};
// Returns why nothing more can start under the record's approval; "" if the rollout can be started.
std::string spent(const Record& record);

std::string to_text(const Record& record);
Result<Record> record_from_text(const std::string& text);  // Code::corrupt if malformed

}  // namespace muster::rollout
