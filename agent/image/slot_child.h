// The order `write_slot`: write_slot() in a transient unit of systemd's, which holds it down beside jobs
// (idle CPU and IO weight, memory, the job's own cap on what is written) and keeps its mounts to itself.
//
// The unit has one name: one that is left of an agent that was killed is stopped first, and waited for.
// Withdrawn or out of time, it is stopped as well; what it wrote is gone on with by the next order. Thread:
// blocking, the agent's worker thread; write_slot_child() is the unit's own program.
#pragma once

#include <functional>
#include <string>

#include "agent/runner.h"
#include "base/json.h"
#include "base/os.h"
#include "base/result.h"
#include "base/wire.h"

namespace muster {

inline constexpr const char* kWriteSlotUnit = "muster-write-slot.service";

// The order's params: wire::SlotJob. Result: to_json(WriteSlotResult), write_ms.
Result<Json> run_write_slot(const Files& files, Process& process, const wire::WorkOrder& order,
                            const WorkRunner::Emit& emit, const std::function<bool()>& cancelled);

// `muster-agent write-slot --stdin`: {"order","job"} in; lines of JSON out: {"kind":"progress","data"},
// {"kind":"beat"} every second, and last {"kind":"result", "result"} or {"kind":"result","code","message"}.
Status write_slot_child();

// The result in the unit's output. failed: it ended without one.
Result<Json> result_of_child(const Output& output);

}  // namespace muster
