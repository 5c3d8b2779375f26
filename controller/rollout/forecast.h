// Simulates a rollout in which nothing fails and nothing else happens, for `muster rollout plan`. No I/O.
#pragma once

#include <vector>

#include "controller/rollout/next.h"

namespace muster::rollout {

struct Forecast {
  std::vector<Batch> batches;  // in order, without the batch under way
  Answer end;                  // after the last batch: `done`, or what prevents that
};

// Assumes an open window, no pause, that every batch is accepted, and that all groups heal after each batch.
Forecast forecast(View view, Row row);

}  // namespace muster::rollout
