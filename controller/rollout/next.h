// What a rollout does next: the one decision of a night. Everything else is ordinary runs. Pure: the same
// view and row have the same answer.
//
// Promises, of each batch at the moment that it begins:
//   - its nodes and those that are away for other reasons are together no more than Policy::max_unavailable;
//   - no group misses more members than it can, whatever the cause; one that is not healed gives none;
//   - an image that no canary has proven goes to canaries only: nodes that have a BMC, serve nothing and are
//     not special. Nodes of an image without such a node are left;
//   - a special node (Node::special) is alone, and no other node is waiting for its turn;
//   - idle nodes and busy ones are not mixed: an idle one would wait for the others' jobs;
//   - a node that failed in this rollout is not taken again, and one that was given back not in this night;
//   - nothing begins after a failed canary, above the failure budget, in a pause, outside the window, during
//     another run, or when images or policy are not those approved.
// `away` is: silent, on trial, in maintenance, or in a state other than `accepted` and `degraded`.
// The nodes of the batch under way count as away as well, from its beginning until it is judged.
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
  failed,         // it was tried
  no_way,         // it is never re-imaged (Node::way_reason)
  unknown_image,  // the image that it runs is unknown
  needed,         // one of its groups stops without it
  no_canary,      // nothing could prove its image first
  // Until it is back:
  held,           // by an operator
  quarantined,    // by a run
  maintenance,    // drained, by muster or in the scheduler
  installing,     // a run left it half installed
  not_installed,  // never seen, or never installed
  silent,
  on_trial,
  // Until another night:
  jobs,       // they did not end in time
  cancelled,  // its run was
  refused,    // by the planner
  // Until another batch:
  canary,       // its image is not proven yet, or the next batch is of canaries
  unavailable,  // max_unavailable is reached
  section,      // its group misses as many members as it can
  healing,      // its group is not healed
  busy,         // idle nodes go first
  last,         // it goes alone, after the others
  // It would be in the batch, but none begins now (Answer::wait, Answer::stop).
  held_back
};
std::string_view to_string(Reason reason);

struct Left {
  size_t node = 0;  // place in View::nodes
  Reason reason = Reason::none;
  int group = -1;  // place in View::groups of `needed`, `section` and `healing`; -1: none
};

// What keeps a batch from being larger.
enum class Bound {
  all,              // nothing: no other node is waiting for its turn
  canary,           // Policy::canary of each image
  max_unavailable,  // and those that are away
  section,          // Batch::bound_group can miss no more
  healing,          // Batch::bound_group is not healed
  idle,             // the other nodes have jobs
  alone             // it is a special node's
};
std::string_view to_string(Bound bound);

struct Batch {
  bool canary = false;
  std::vector<size_t> nodes;  // places in View::nodes, ascending; at least one
  // The in-place nodes of the probable next batch, whose other slot can be written now. None after a canary:
  // a bad image would overwrite the system that they could go back to.
  std::vector<size_t> prefetch;
  int failure_budget = 0;  // of the run: what is left of the rollout's, 0 for a canary; -1: any number
  Bound bound = Bound::all;
  int bound_group = -1;  // place in View::groups
};

enum class Do { run, wait, stop, done };
enum class WaitFor {
  nothing,
  run,        // the rollout's own: fold it in (judged()), then call again
  other_run,  // of an operator
  resume,     // it is paused
  window,     // to begin
  night,      // the next one: all that is left was given back in this one
  healing,    // of a group
  nodes       // that are away: max_unavailable, a group or a canary waits for them
};
std::string_view to_string(WaitFor what);

struct Answer {
  Do what = Do::wait;
  Batch batch;                         // of `run`
  WaitFor wait = WaitFor::nothing;     // of `wait`
  StopReason stop = StopReason::none;  // of `stop`
  std::vector<Left> left;              // in the order of nodes; all that need an update but the batch's
};

// `view` fulfils what its header says (sorted, places in range).
Answer next(const View& view, const Row& row);

}  // namespace muster::rollout
