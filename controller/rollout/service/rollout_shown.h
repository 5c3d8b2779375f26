// A rollout as JSON: what is approved, what each node gets and when, why nodes wait. Pure functions, no I/O.
#pragma once

#include <string>

#include "base/json.h"
#include "controller/rollout/next.h"
#include "controller/rollout/service/rollout_port.h"

namespace muster {

// {digest, spec_revision, roles, images: {name: digest}, rebuild, rebuilt_images, effects: [text]}, and, if
// it is approved, {by, time}.
Json approval_shown(const rollout::Approval& approval);
// {batches: [{number, canary, nodes, bound, bound_group}], end, nodes: [{node, image, now, wanted, way,
// way_reason, batch, bound, reason, group}]}: all nodes of the roles; `batch` 0: none, with the reason in
// `reason`. `bound` of a node: the limit on the size of its batch.
Json forecast_shown(const rollout::View& view, const rollout::Forecast& forecast);
// For the live log: {id, state, night, preparing, outcome}; outcome "" until it is noted.
Json rollout_event(const rollout::Record& record);
// {id, state, stop, why_paused, night, window_until, clock_set_ms, preparing, builds: [{image, tries, began,
// ended, error}], started, ended, batches, batch, approval, done, failed, postponed: [...], held: [{image,
// digest, node, run, reason}], past: [{node, failed, postponed, run, time, digest, reason}], skips: [{node,
// reason, by, since, until}], last_window}. `builds`: of the images that the window builds before its first
// batch, while `preparing`. `held`: images whose canary failed; `past`: nodes that did not get an image when
// it was last their turn, in this or an earlier rollout. `last_window`: null, or {rollout, night, outcome,
// why, detail, opened, ended, batches, updated, failed, left: {reason: number}, unbuilt: {image: why},
// building_ms, idle_windows} of the last one that is over (window_result.h).
Json record_shown(const rollout::Record& record);
// What a reason leaves open: the group, why there is no way, who skipped the node until when, who keeps it
// out of the scheduler; "" if nothing.
std::string why_left(const rollout::View& view, const rollout::Record& record, const rollout::Left& left);
// [{node, reason, group, why}].
Json left_shown(const rollout::View& view, const rollout::Record& record,
                const std::vector<rollout::Left>& left);
// Returns one word: what the rollout waits for, or why it stopped.
std::string word_of_answer(const rollout::Answer& answer);

}  // namespace muster
