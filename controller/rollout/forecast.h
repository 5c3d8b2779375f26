// What a rollout would do if nothing failed and nothing else happened: `muster rollout plan`. Pure.
#pragma once

#include <vector>

#include "controller/rollout/next.h"

namespace muster::rollout {

struct Forecast {
  std::vector<Batch> batches;  // in order; those under way are not in it
  Answer end;                  // after the last one: `done`, or what prevents that
};

// Assumes that the window is open and not paused, every batch is accepted, and groups heal after it.
Forecast forecast(View view, Row row);

}  // namespace muster::rollout
