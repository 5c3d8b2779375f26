#include "controller/rollout/rollout_record.h"

#include <fmt/format.h>

#include "base/json_dump.h"

namespace muster::rollout {

MUSTER_RECORD(BatchRun, number, run, canary, images)
MUSTER_RECORD(Skip, reason, by, since, until)
MUSTER_RECORD(Record, id, approval, row, started, ended, night, window_until, why_paused, runs, before, left,
              sparse(skips), sparse(window), sparse(last_window))

namespace {

Result<Row> read_row(const std::string& text) {
  TRY(const Json json, parse_json(text));
  return read_record<Row>(json, "rollout");
}

Result<Record> read(const std::string& text) {
  TRY(const Json json, parse_json(text));
  return read_record<Record>(json, "rollout");
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

std::string run_tag(int64_t rollout, int64_t batch) { return fmt::format("rollout {}/{}", rollout, batch); }

bool has_tag(const std::string& approved_by, const std::string& tag) {
  return approved_by.starts_with(tag + ",");
}

std::string state_of(const Record& record) {
  if (!record.row) return "approved";
  const Stage stage = record.row->stage;
  const bool goes_on = stage == Stage::canary || stage == Stage::batches;
  return record.row->paused && goes_on ? "paused" : std::string(to_string(stage));
}

std::string spent(const Record& record) {
  if (!record.row || record.row->stage != Stage::stopped) return "";
  switch (record.row->stop) {
    case StopReason::none:
    case StopReason::target_changed:  // not_covered() checks whether the approval covers the new target
      return "";
    case StopReason::canary_failed:
      return "a canary failed";
    case StopReason::budget:
      return "more nodes failed than `failure_budget` allows";
    case StopReason::no_canary:
      return "no node could serve as a canary";
    case StopReason::replaced:
      return "a newer rollout was approved";
  }
  return "";
}

bool is_skipped(const Record& record, const std::string& node, TimeMs now) {
  const auto found = record.skips.find(node);
  return found != record.skips.end() && (found->second.until == 0 || now < found->second.until);
}

std::string to_text(const Record& record) { return dump_json(record_json(record)); }

Result<Record> record_from_text(const std::string& text) {
  Result<Record> record = read(text);
  if (!record.ok()) return fail(Code::corrupt, record.error().message);
  return record;
}

}  // namespace muster::rollout
