// WorkRunner: carries out one work order on this machine. The agent owns order, journal and deadlines; the
// runner owns the work.
//
// Owned by main (agent/work/work_runner.cc runs the work in a worker thread) or by the simulated node. One
// order at a time: run() is not called again before the previous order's `done` was called. Thread: run(),
// cancel() and both callbacks on the reactor's thread; callbacks never run inside run() or cancel(). Never:
// stores orders, contacts the controller, decides whether an order runs again.
#pragma once

#include <functional>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "base/wire.h"

namespace muster {

// How an order ended. `result` is valid even on failure (the statuses of the steps that ran).
struct WorkOutcome {
  Status status = Ok{};
  Json result = Json::object();
};

// Which part of an order to run: the work; or, once a departure is prepared (`kexec`, `boot_slot`, and any
// order with preconditions), leaving or undoing.
enum class OrderPart { work, leave, drop };

class WorkRunner {
 public:
  // kind and data of wire::Event: progress, step, log.
  using Emit = std::function<void(const std::string& kind, Json data)>;
  using Done = std::function<void(WorkOutcome)>;
  virtual ~WorkRunner() = default;
  // For `boot_disk`, `reboot` and `power_off` the agent has already reported success, and the report was
  // acknowledged; the runner carries them out, and calls `done` only on failure. `kexec`, `boot_slot`, and
  // those of the former that have preconditions, first prepare everything as ordinary work; once that success
  // is acknowledged they run again as OrderPart::leave, or as OrderPart::drop if withdrawn in the meantime.
  virtual void run(const wire::WorkOrder& order, OrderPart part, Emit emit, Done done) = 0;
  // The deadline has passed, or the order was withdrawn: stop at the next safe point, then call `done` (with
  // the partial result). Does nothing when idle.
  virtual void cancel() = 0;
};

}  // namespace muster
