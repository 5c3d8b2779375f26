// Decides what a rollout does next; everything else that a rollout does is ordinary runs. Pure functions, no
// I/O: the same view and row give the same answer.
//
// Guarantees for each batch at the moment when it begins:
//   - its nodes and the nodes that are away for other reasons are together at most Policy::max_unavailable;
//   - no group lacks more members than it can do without; a group that is not healed gives none;
//   - an image that no canary has proven goes to canaries only: nodes that have a BMC, serve nothing, are not
//     special and did not fail before (unless an operator names them);
//   - an image for which there is no such node, or whose canary failed, is not rolled out; others are;
//   - a special node (Node::special) is taken alone, when no other node is waiting for its turn;
//   - a node that failed in an earlier rollout is taken when no other is waiting, apart from special ones;
//   - idle nodes and busy ones are not mixed: an idle one would wait for the others' jobs;
//   - of both, nodes go first that have waited longest (Node::turn);
//   - a node that failed is not taken again; one returned to service unchanged, not in the same window;
//   - nothing begins above the failure budget, during a pause, outside the window, during another run, or
//     when images or policy are not those approved.
// `away` is: silent, on trial, in maintenance, or in a state other than `accepted` and `degraded`.
// The nodes of the batch under way also count as away, from its beginning until it is judged.
#pragma once

#include <string_view>
#include <vector>

#include "controller/rollout/rollout_row.h"
#include "controller/rollout/rollout_view.h"

namespace muster::rollout {

// Why a node of the rollout's roles that does not run the wanted image is not in the batch.
enum class Reason {
  none,  // it runs the wanted image, is in the batch, or does not belong to the rollout
  // For this rollout:
  failed,         // it was tried and not accepted
  no_way,         // it cannot be re-imaged (Node::way_reason)
  unknown_image,  // the image that it runs is unknown
  needed,         // one of its groups would stop without it
  no_canary,      // no node can be the canary of its image
  canary_failed,  // a canary of its image failed (Row::held)
  skipped,        // an operator leaves it out (Record::skips)
  // Until it is available again:
  held,           // quarantined by an operator
  quarantined,    // quarantined by a run
  maintenance,    // drained, by muster or in the scheduler
  installing,     // a run left it partly installed
  not_installed,  // never seen, or never installed
  silent,
  on_trial,
  // Until another window:
  jobs,       // its jobs did not end in time, or others had taken it out or resumed it
  cancelled,  // its run was cancelled
  refused,    // refused by the planner
  // Until another batch:
  canary,       // its image is not proven yet, or the next batch is of canaries
  unavailable,  // max_unavailable is reached
  section,      // its group already lacks as many members as it can do without
  healing,      // its group is not healed
  busy,         // idle nodes go first
  turn,         // busy nodes that have waited longer go first
  last,         // it failed before, or is updated alone: after the others
  // It would be in the batch, but none begins now (Answer::wait, Answer::stop).
  held_back
};
std::string_view to_string(Reason reason);

struct Left {
  size_t node = 0;  // index into View::nodes
  Reason reason = Reason::none;
  int group = -1;  // index into View::groups for `needed`, `section` and `healing`; -1: none
};

// What limits the size of a batch.
enum class Bound {
  all,              // nothing: no other node is waiting for its turn
  canary,           // Policy::canary of each image
  max_unavailable,  // max_unavailable, including the nodes that are away
  section,          // Batch::bound_group cannot do without more members
  healing,          // Batch::bound_group is not healed
  idle,             // the other nodes have jobs, or those of the batch have: they are not mixed
  alone             // it is the batch of a special node
};
std::string_view to_string(Bound bound);

struct Batch {
  bool canary = false;
  std::vector<size_t> nodes;  // indexes into View::nodes, ascending; at least one
  // The in-place nodes of the probable next batch, whose other slot can be written now. Empty for a canary
  // batch: a bad image would overwrite the system to which they could go back.
  std::vector<size_t> prefetch;
  int failure_budget = 0;  // for the run: the rest of the rollout's budget, 0 for a canary; -1: no limit
  Bound bound = Bound::all;
  int bound_group = -1;  // index into View::groups; -1: none
};

enum class Do { run, wait, stop, done };
enum class WaitFor {
  nothing,
  run,          // the rollout's own run: apply its result (judged()), then call again
  other_run,    // an operator's run
  resume,       // an operator must resume the paused rollout
  window,       // the window must open
  next_window,  // the next window: all remaining nodes were returned to service unchanged in this one
  healing,      // a group must heal
  nodes,        // nodes that are away: max_unavailable, a group or a canary waits for them
  images        // builds of this night (Window::preparing); next() is not called before they have ended
};
std::string_view to_string(WaitFor what);

struct Answer {
  Do what = Do::wait;
  Batch batch;                         // for `run`
  WaitFor wait = WaitFor::nothing;     // for `wait`
  StopReason stop = StopReason::none;  // for `stop`
  std::vector<Left> left;              // in the order of nodes: all that need an update, except the batch's
};

// `view` must be valid as its header requires (nodes sorted, indexes in range).
Answer next(const View& view, const Row& row);

// Simulates a rollout in which nothing fails and nothing else happens, for `muster rollout plan`.
struct Forecast {
  std::vector<Batch> batches;  // in order, without the batch under way
  Answer end;                  // after the last batch: `done`, or what prevents that
};

// Assumes an open window, no pause, that every batch is accepted, and that all groups heal after each batch.
Forecast forecast(View view, Row row);

}  // namespace muster::rollout
