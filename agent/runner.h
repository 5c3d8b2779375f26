// WorkRunner: carries out one work order on this machine. The agent owns order, journal and deadlines; the
// runner owns the work.
//
// Owned by main (agent/work_runner.cc runs the work in a worker thread) or by the simulated node. One order
// at a time: run() is never called again before the `done` of the last one was called. Thread: run(),
// cancel() and both callbacks on the reactor's thread; callbacks never run inside run() or cancel(). Never:
// remembers orders, talks to the controller, decides whether an order runs again.
#pragma once

#include <functional>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "base/wire.h"

namespace muster {

// How an order ended. `result` counts even when it failed (the statuses of the steps that ran).
struct WorkOutcome {
  Status status = Ok{};
  Json result = Json::object();
};

// What of an order is asked for. Of a `kexec` or `boot_slot` that got everything ready: to go, or to undo it.
enum class OrderPart { work, leave, drop };

class WorkRunner {
 public:
  // kind and data of wire::Event: progress, step, log.
  using Emit = std::function<void(const std::string& kind, Json data)>;
  using Done = std::function<void(WorkOutcome)>;
  virtual ~WorkRunner() = default;
  // For `boot_disk`, `reboot` and `power_off` the agent has already reported and had acknowledged success;
  // the runner just does it, and calls `done` only when that failed. `kexec` and `boot_slot` are work like
  // any other, which gets everything ready; when its success was acknowledged it comes again, as
  // OrderPart::leave, to be done; or as OrderPart::drop, when it was withdrawn meanwhile.
  virtual void run(const wire::WorkOrder& order, OrderPart part, Emit emit, Done done) = 0;
  // The deadline passed, or the order was withdrawn: stop at the next safe point, then call `done` (with
  // whatever was achieved). Harmless when idle.
  virtual void cancel() = 0;
};

}  // namespace muster
