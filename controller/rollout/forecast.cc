#include "controller/rollout/forecast.h"

#include <utility>

namespace muster::rollout {
namespace {

// Changes view and row as if all nodes of the batch under way had been accepted.
void come_through(View& view, Row& row) {
  for (Node& node : view.nodes) {
    const auto found = row.batch->images.find(node.name);
    if (found == row.batch->images.end()) continue;
    node.image_now = found->second;
    node.state = NodeState::accepted;
    node.online = true;
    node.on_trial = node.maintenance = false;
    row.done[node.name] = row.batch->run;
    if (row.batch->canary) ++row.proven[node.image_now];
  }
  row.batch.reset();
}

}  // namespace

Forecast forecast(View view, Row row) {
  view.window_open = true;
  view.active_run = 0;
  row.paused = false;
  for (Group& group : view.groups) group.healed = true;
  if (row.batch) come_through(view, row);
  Forecast out;
  // The loop ends, because each batch has at least one node and no node is taken twice.
  while ((out.end = next(view, row)).what == Do::run) {
    out.batches.push_back(out.end.batch);
    row = with_batch(std::move(row), view, out.end);
    come_through(view, row);
  }
  return out;
}

}  // namespace muster::rollout
