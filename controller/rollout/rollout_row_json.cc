#include "controller/rollout/rollout_row_json.h"

#include "base/json.h"
#include "base/json_dump.h"
#include "base/words.h"

namespace muster::rollout {
namespace {

constexpr Words<Stage, 4> kStages = {{{Stage::canary, "canary"},
                                      {Stage::batches, "batches"},
                                      {Stage::stopped, "stopped"},
                                      {Stage::done, "done"}}};
constexpr Words<StopReason, 6> kStops = {{{StopReason::none, ""},
                                          {StopReason::canary_failed, "canary-failed"},
                                          {StopReason::budget, "budget"},
                                          {StopReason::target_changed, "target-changed"},
                                          {StopReason::no_canary, "no-canary"},
                                          {StopReason::replaced, "replaced"}}};

template <typename Value, size_t N>
Result<Value> known(const Words<Value, N>& words, const std::string& word) {
  if (const auto value = value_of(words, word)) return *value;
  return fail(Code::corrupt, "rollout: unknown word '" + word + "'");
}

Status read(const Json& json, Failure& out) {
  JsonReader r(json, "rollout.failed");
  r.get("reason", out.reason);
  r.get("run", out.run);
  r.get("canary", out.canary);
  r.get("returned", out.returned);
  return r.finish();
}

Status read(const Json& json, Postponed& out) {
  JsonReader r(json, "rollout.postponed");
  r.get("reason", out.reason);
  r.get("run", out.run);
  r.get("night", out.night);
  r.get("times", out.times);
  r.get("cancelled", out.cancelled);
  r.get("refused", out.refused);
  return r.finish();
}

Status read(const Json& json, std::optional<Underway>& out) {
  if (json.is_null()) return Ok{};
  out.emplace();
  JsonReader r(json, "rollout.batch");
  r.get("number", out->number);
  r.get("run", out->run);
  r.get("canary", out->canary);
  r.get("images", out->images);
  return r.finish();
}

template <typename Entry>
Status read_all(const Json& json, std::map<std::string, Entry>& out) {
  if (!json.is_object()) return fail(Code::invalid, "rollout: expected an object");
  for (const auto& [node, entry] : json.items()) TRY_(read(entry, out[node]));
  return Ok{};
}

Result<Row> read_row(const std::string& text) {
  TRY(const Json json, parse_json(text));
  Row row;
  std::string stage, stop;
  JsonReader r(json, "rollout");
  r.get("id", row.id);
  r.get("target", row.target);
  r.get("stage", stage);
  r.get("stop", stop);
  r.get("paused", row.paused);
  r.get("batches", row.batches);
  r.get("proven", row.proven);
  r.get("done", row.done);
  TRY_(read(r.raw("batch"), row.batch));
  TRY_(read_all(r.raw("failed"), row.failed));
  TRY_(read_all(r.raw("postponed"), row.postponed));
  TRY_(r.finish());
  TRY(row.stage, known(kStages, stage));
  TRY(row.stop, known(kStops, stop));
  return row;
}

}  // namespace

std::string to_text(const Row& row) {
  Json failed = Json::object(), postponed = Json::object(), batch;
  for (const auto& [node, f] : row.failed)
    failed[node] = {{"reason", f.reason}, {"run", f.run}, {"canary", f.canary}, {"returned", f.returned}};
  for (const auto& [node, p] : row.postponed)
    postponed[node] = {{"reason", p.reason},       {"run", p.run},
                       {"night", p.night},         {"times", p.times},
                       {"cancelled", p.cancelled}, {"refused", p.refused}};
  if (row.batch)
    batch = {{"number", row.batch->number},
             {"run", row.batch->run},
             {"canary", row.batch->canary},
             {"images", row.batch->images}};
  return dump_json(Json{{"id", row.id},
                        {"target", row.target},
                        {"stage", to_string(row.stage)},
                        {"stop", to_string(row.stop)},
                        {"paused", row.paused},
                        {"batches", row.batches},
                        {"batch", batch},
                        {"proven", row.proven},
                        {"failed", failed},
                        {"postponed", postponed},
                        {"done", row.done}});
}

Result<Row> row_from_text(const std::string& text) {
  Result<Row> row = read_row(text);
  if (!row) return fail(Code::corrupt, row.error().message);
  return row;
}

std::string_view to_string(Stage stage) { return word_of(kStages, stage); }
std::string_view to_string(StopReason reason) { return word_of(kStops, reason); }

}  // namespace muster::rollout
