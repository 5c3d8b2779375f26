#include "agent/core/journal.h"

namespace muster {

Json to_json(const OrderRecord& record) {
  Json json = {{"order", record.order}, {"kind", record.kind}, {"finished", record.finished}};
  if (record.finished) json["finish"] = record.finish;
  return json;
}

Result<OrderRecord> order_record_from_json(const Json& json) {
  JsonReader r(json, "record");
  OrderRecord record;
  r.get("order", record.order);
  r.get("kind", record.kind);
  r.get("finished", record.finished);
  record.finish = r.raw("finish");
  TRY_(r.finish());
  return record;
}

}  // namespace muster
