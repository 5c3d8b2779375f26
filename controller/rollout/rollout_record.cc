#include "controller/rollout/rollout_record.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/json_dump.h"
#include "controller/rollout/rollout_row_json.h"

namespace muster::rollout {
namespace {

Status read_runs(const Json& json, std::vector<BatchRun>& out) {
  if (!json.is_array()) return fail(Code::invalid, "rollout.runs: expected a list");
  for (const Json& one : json) {
    BatchRun run;
    JsonReader r(one, "rollout.runs");
    r.get("number", run.number);
    r.get("run", run.run);
    r.get("canary", run.canary);
    r.get("images", run.images);
    TRY_(r.finish());
    out.push_back(std::move(run));
  }
  return Ok{};
}

Result<Record> read_record(const std::string& text) {
  TRY(const Json json, parse_json(text));
  Record out;
  JsonReader r(json, "rollout");
  r.get("id", out.id);
  r.get("started", out.started);
  r.get("ended", out.ended);
  r.get("night", out.night);
  r.get("window_until", out.window_until);
  r.get("why_paused", out.why_paused);
  r.get("before", out.before);
  r.get("left", out.left);
  TRY(out.approval, approval_from_json(r.raw("approval")));
  TRY_(read_runs(r.raw("runs"), out.runs));
  const Json row = r.raw("row");
  TRY_(r.finish());
  if (row.is_null()) return out;
  TRY(out.row, row_from_text(dump_json(row)));
  return out;
}

}  // namespace

std::string run_tag(int64_t rollout, int64_t batch) { return fmt::format("rollout {}/{}", rollout, batch); }

bool has_tag(const std::string& approved_by, const std::string& tag) {
  return approved_by.rfind(tag + ",", 0) == 0;
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

std::string to_text(const Record& record) {
  Json runs = Json::array();
  for (const BatchRun& run : record.runs)
    runs.push_back(
        {{"number", run.number}, {"run", run.run}, {"canary", run.canary}, {"images", run.images}});
  Json row;
  if (record.row) row = parse_json(to_text(*record.row)).value();
  return dump_json(Json{{"id", record.id},
                        {"approval", to_json(record.approval)},
                        {"row", row},
                        {"started", record.started},
                        {"ended", record.ended},
                        {"night", record.night},
                        {"window_until", record.window_until},
                        {"why_paused", record.why_paused},
                        {"runs", runs},
                        {"before", record.before},
                        {"left", record.left}});
}

Result<Record> record_from_text(const std::string& text) {
  Result<Record> record = read_record(text);
  if (!record.ok()) return fail(Code::corrupt, record.error().message);
  return record;
}

}  // namespace muster::rollout
