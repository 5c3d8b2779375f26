// The rate of the host's time stamp counter (TSC), which all processors of the emulator read.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "lab/lab_dir.h"

namespace muster::lab {

// In kHz, measured in 50 ms against the monotonic clock. Thread-safe.
int64_t measure_tsc_khz();
// As measured when the lab came up: a controller that starts again gives its machines the same arguments,
// and a plan that has begun stays the same. Kept in the lab's folder.
Result<int64_t> tsc_khz(const LabDir& dir);

}  // namespace muster::lab
