// What a rollout would do if nothing failed and nothing else happened: `muster rollout plan`. Pure.
#pragma once

#include <vector>

#include "controller/rollout/next.h"

namespace muster::rollout {

struct Forecast {
  std::vector<Batch> batches;  // in order; those under way are not in it
  Answer end;                  // behind the last one: `done`, or what stands in the way
};

// As if the window were open and nothing paused it, every batch came through, and groups healed behind it.
Forecast forecast(View view, Row row);

}  // namespace muster::rollout
