#include "controller/rollout/forecast.h"

#include <utility>

namespace muster::rollout {

Forecast forecast(View view, Row row) {
  view.window_open = true;
  view.active_run = 0;
  row.paused = false;
  for (Group& group : view.groups) group.healed = true;
  Forecast out;
  // Each batch has at least one node, and none has a second turn.
  while ((out.end = next(view, row)).what == Do::run) {
    const Batch& batch = out.end.batch;
    for (const size_t at : batch.nodes) {
      Node& node = view.nodes[at];
      if (batch.canary) ++row.proven[node.image_wanted];
      row.done[node.name] = 0;
      node.image_now = node.image_wanted;
    }
    out.batches.push_back(batch);
  }
  return out;
}

}  // namespace muster::rollout
