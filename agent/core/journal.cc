#include "agent/core/journal.h"

#include "base/record.h"

namespace muster {

MUSTER_RECORD(OrderRecord, order, kind, finished, sparse(finish))

Json to_json(const OrderRecord& record) { return record_json(record); }

Result<OrderRecord> order_record_from_json(const Json& json) {
  return read_record<OrderRecord>(json, "record");
}

}  // namespace muster
