#include "controller/rollout/rollout_row_json.h"

#include "base/json_dump.h"

namespace muster::rollout {
namespace {

Result<Row> read_row(const std::string& text) {
  TRY(const Json json, parse_json(text));
  return read_record<Row>(json, "rollout");
}

}  // namespace

std::string to_text(const Row& row) { return dump_json(record_json(row)); }

Result<Row> row_from_text(const std::string& text) {
  Result<Row> row = read_row(text);
  if (!row) return fail(Code::corrupt, row.error().message);
  return row;
}

std::string_view to_string(Stage stage) { return word_of(kStages, stage); }
std::string_view to_string(StopReason reason) { return word_of(kStopReasons, reason); }

}  // namespace muster::rollout
