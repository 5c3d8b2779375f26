// The order `write_slot`: runs write_slot() in a transient systemd unit, which limits its effect on running
// jobs (idle CPU and IO weight, memory, a cap on bytes written) and keeps its mounts private.
//
// The unit has a fixed name. If a killed agent left one behind, that one is stopped and waited for first. A
// withdrawn or timed-out order stops it as well; the next order continues from what it wrote. Thread:
// blocking, the agent's worker thread; write_slot_child() runs in the unit.
#pragma once

#include <functional>
#include <string>

#include "agent/core/runner.h"
#include "base/json.h"
#include "base/result.h"
#include "base/wire.h"
#include "sys/os.h"

namespace muster {

inline constexpr const char* kWriteSlotUnit = "muster-write-slot.service";

// The order's params: wire::SlotJob. Result: to_json(WriteSlotResult), write_ms.
Result<Json> run_write_slot(const Files& files, Process& process, const wire::WorkOrder& order,
                            const WorkRunner::Emit& emit, const std::function<bool()>& cancelled);

// `muster-agent write-slot --stdin`: {"order","job"} in; lines of JSON out: {"kind":"progress","data"},
// {"kind":"beat"} every second, and last {"kind":"result", "result"} or {"kind":"result","code","message"}.
Status write_slot_child();

// Returns the result in the unit's output. failed: it ended without one.
Result<Json> result_of_child(const Output& output);

}  // namespace muster
