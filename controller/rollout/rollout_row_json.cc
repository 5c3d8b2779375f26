#include "controller/rollout/rollout_row_json.h"

#include <algorithm>
#include <array>

#include "base/json.h"
#include "base/json_dump.h"

namespace muster::rollout {
namespace {

constexpr std::array<std::string_view, 4> kStages = {"canary", "batches", "stopped", "done"};
constexpr std::array<std::string_view, 5> kStops = {"", "canary-failed", "budget", "target-changed",
                                                    "no-canary"};

template <typename Value, size_t N>
Result<Value> value_of(const std::array<std::string_view, N>& words, const std::string& word) {
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) return fail(Code::corrupt, "rollout: unknown word '" + word + "'");
  return static_cast<Value>(found - words.begin());
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
  TRY(row.stage, (value_of<Stage>(kStages, stage)));
  TRY(row.stop, (value_of<StopReason>(kStops, stop)));
  return row;
}

}  // namespace

std::string to_text(const Row& row) {
  Json failed = Json::object(), postponed = Json::object(), batch;
  for (const auto& [node, f] : row.failed)
    failed[node] = {{"reason", f.reason}, {"run", f.run}, {"canary", f.canary}, {"returned", f.returned}};
  for (const auto& [node, p] : row.postponed)
    postponed[node] = {{"reason", p.reason},
                       {"run", p.run},
                       {"night", p.night},
                       {"times", p.times},
                       {"cancelled", p.cancelled}};
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

std::string_view to_string(Stage stage) { return kStages.at(static_cast<size_t>(stage)); }
std::string_view to_string(StopReason reason) { return kStops.at(static_cast<size_t>(reason)); }

}  // namespace muster::rollout
