// AgentJournal: an agent's record of its orders, which survives restarts of its process.
//
// Owned by main (or the simulated node); used by Agent only. Records are appended; the newest record of an
// order counts. The RAM system keeps it in memory-backed files (it dies with the boot), the installed system
// in /state/muster. File version: agent/work/file_journal.h; in memory: tests/sim/node.h. Thread: the
// reactor's thread; `done` never runs inside append().
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace muster {

struct OrderRecord {
  std::string order;      // WorkOrder::id
  std::string kind;       // kind of the order, for people who read the file
  bool finished = false;  // false: begun, end unknown
  Json finish = Json();   // data of the `finished` event, sent again when the order is received again
};
Json to_json(const OrderRecord& record);
Result<OrderRecord> order_record_from_json(const Json& json);

class AgentJournal {
 public:
  using Done = std::function<void(Status)>;
  virtual ~AgentJournal() = default;
  // Returns all durable records, oldest first. A truncated last record is left out, and is not an error.
  virtual Result<std::vector<OrderRecord>> load() = 0;
  // The record is durable when `done` is called with Ok.
  virtual void append(const OrderRecord& record, Done done) = 0;
};

}  // namespace muster
