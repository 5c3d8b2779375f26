#include "controller/rollout/service/rollout_shown.h"

#include <fmt/format.h>

#include <map>

#include "base/words.h"
#include "controller/rollout/rollout_record.h"
#include "controller/rollout/survey.h"

namespace muster {
namespace {

using namespace rollout;

std::string group_name(const View& view, int group) {
  return group < 0 ? "" : view.groups[static_cast<size_t>(group)].name;
}

constexpr Words<Way, 3> kWays = {
    {{Way::in_place, "in-place"}, {Way::through_ram, "through-ram"}, {Way::none, "none"}}};

Json json_names(const View& view, const std::vector<size_t>& nodes) {
  Json out = Json::array();
  for (const size_t at : nodes) out.push_back(view.nodes[at].name);
  return out;
}

std::string why_skipped(const Skip& skip) {
  return fmt::format("{} (by {}, until {})", skip.reason, skip.by,
                     skip.until == 0 ? "`muster rollout unskip`" : to_iso8601(skip.until));
}

std::string why_held(const HeldImage& held) {
  return fmt::format("canary {} in run {}: {}", held.node, held.run, held.reason);
}

Json node_shown(const Node& node) {
  const bool current = node.image_now == node.image_wanted;
  return {{"node", node.name},
          {"role", node.role},
          {"now", node.image_now},
          {"wanted", node.image_wanted},
          {"current", current},
          {"way", current ? "" : std::string(word_of(kWays, node.way))},
          {"way_reason", node.way_reason},
          {"batch", 0},
          {"bound", ""},
          {"reason", ""},
          {"group", ""}};
}

}  // namespace

Json approval_shown(const Approval& a) {
  Json images = Json::object();
  for (const auto& [name, image] : a.images) images[name] = image.digest;
  Json out = {{"digest", digest_of(a)},
              {"spec_revision", a.spec_revision},
              {"roles", a.roles},
              {"images", images},
              {"rebuild", word_of(kRebuilds, a.rebuild)},
              {"rebuilt_images", a.rebuilt_images},
              {"effects", effects_of(a)}};
  if (!a.by.empty()) out["by"] = a.by, out["time"] = a.time;
  return out;
}

Json forecast_shown(const View& view, const Forecast& forecast) {
  std::map<size_t, Json> nodes;
  for (size_t at = 0; at < view.nodes.size(); ++at)
    if (in_scope(view, view.nodes[at])) nodes[at] = node_shown(view.nodes[at]);
  Json batches = Json::array();
  for (const Batch& batch : forecast.batches) {
    const std::string bound{to_string(batch.bound)}, group = group_name(view, batch.bound_group);
    batches.push_back({{"number", batches.size() + 1},
                       {"canary", batch.canary},
                       {"nodes", json_names(view, batch.nodes)},
                       {"bound", bound},
                       {"bound_group", group}});
    for (const size_t at : batch.nodes) {
      nodes[at]["batch"] = batches.size();
      nodes[at]["bound"] = bound;
      nodes[at]["group"] = group;
    }
  }
  for (const Left& left : forecast.end.left) {
    const auto found = nodes.find(left.node);
    if (found == nodes.end()) continue;
    found->second["reason"] = to_string(left.reason);
    found->second["group"] = group_name(view, left.group);
  }
  Json list = Json::array();
  for (auto& [at, node] : nodes) list.push_back(std::move(node));
  return {{"batches", batches}, {"end", word_of_answer(forecast.end)}, {"nodes", list}};
}

std::string why_left(const View& view, const Record& record, const Left& left) {
  static const Row kNone;
  const Node& node = view.nodes[left.node];
  const Row& row = record.row ? *record.row : kNone;
  if (left.group >= 0) return group_name(view, left.group);
  if (left.reason == Reason::no_way) return node.way_reason;
  if (left.reason == Reason::maintenance) return node.why_maintenance;
  if (left.reason == Reason::no_canary && node.failed_before)
    return fmt::format("failed before: `muster rollout approve --canary {}`", node.name);
  if (left.reason == Reason::skipped)
    if (const auto skip = record.skips.find(node.name); skip != record.skips.end())
      return why_skipped(skip->second);
  if (left.reason == Reason::canary_failed)
    if (const auto held = row.held.find(node.image_wanted); held != row.held.end())
      return why_held(held->second);
  if (left.reason == Reason::failed)
    if (const auto failed = row.failed.find(node.name); failed != row.failed.end())
      return failed->second.reason;
  if (is_of_this_window(left.reason))
    if (const auto back = row.postponed.find(node.name); back != row.postponed.end())
      return back->second.reason;
  return "";
}

Json left_shown(const View& view, const Record& record, const std::vector<Left>& left) {
  Json out = Json::array();
  for (const Left& one : left)
    out.push_back({{"node", view.nodes[one.node].name},
                   {"reason", to_string(one.reason)},
                   {"group", group_name(view, one.group)},
                   {"why", one.group >= 0 ? "" : why_left(view, record, one)}});
  return out;
}

Json rollout_event(const Record& record) {
  const bool noted = is_noted(record);
  return {{"id", record.id},
          {"state", state_of(record)},
          {"night", record.night},
          {"preparing", record.window.preparing},
          {"outcome", noted ? word_of(kWindowOutcomes, record.last_window->outcome) : ""}};
}

Json result_shown(const WindowResult& result) {
  Json out = record_json(result);
  out.erase("idle_before");
  out["idle_windows"] = idle_windows(result);
  return out;
}

Json skips_shown(const Record& record) {
  Json out = Json::array();
  for (const auto& [node, skip] : record.skips)
    out.push_back({{"node", node},
                   {"reason", skip.reason},
                   {"by", skip.by},
                   {"since", skip.since},
                   {"until", skip.until}});
  return out;
}

Json builds_shown(const Window& window) {
  Json out = Json::array();
  for (const auto& [image, build] : window.builds)
    out.push_back({{"image", image},
                   {"tries", build.tries},
                   {"began", build.began},
                   {"ended", build.ended},
                   {"error", build.error}});
  return out;
}

Json record_shown(const Record& record) {
  Json out = {{"id", record.id},
              {"state", state_of(record)},
              {"night", record.night},
              {"window_until", record.window_until},
              {"started", record.started},
              {"ended", record.ended},
              {"why_paused", record.why_paused},
              {"approval", approval_shown(record.approval)},
              {"spent", spent(record)},
              {"clock_set_ms", record.window.clock_set},
              {"preparing", record.window.preparing},
              {"builds", builds_shown(record.window)},
              {"last_window", record.last_window ? result_shown(*record.last_window) : Json()},
              {"skips", skips_shown(record)}};
  Json failed = Json::array(), postponed = Json::array(), done = Json::array(), batch;
  const Row row = record.row.value_or(Row{});
  for (const auto& [node, run] : row.done) done.push_back({{"node", node}, {"run", run}});
  for (const auto& [node, f] : row.failed)
    failed.push_back({{"node", node},
                      {"run", f.run},
                      {"reason", f.reason},
                      {"canary", f.canary},
                      {"returned", f.returned}});
  for (const auto& [node, p] : row.postponed)
    if (!row.done.count(node) && !row.failed.count(node))
      postponed.push_back(
          {{"node", node}, {"run", p.run}, {"reason", p.reason}, {"times", p.times}, {"night", p.night}});
  if (row.batch) {
    Json nodes = Json::array();
    for (const auto& [node, image] : row.batch->images) nodes.push_back(node);
    batch = {{"number", row.batch->number},
             {"run", row.batch->run},
             {"canary", row.batch->canary},
             {"nodes", nodes}};
  }
  out["stop"] = to_string(row.stop);
  out["batches"] = row.batches;
  out["batch"] = batch;
  out["done"] = done;
  out["failed"] = failed;
  out["postponed"] = postponed;
  out["held"] = Json::array();
  for (const auto& [image, held] : held_images(record))
    out["held"].push_back({{"image", image},
                           {"digest", held.digest},
                           {"node", held.node},
                           {"run", held.run},
                           {"reason", held.reason}});
  out["past"] = Json::array();
  for (const auto& [node, past] : record.past)
    if (past.failed > 0 || past.postponed > 0)
      out["past"].push_back({{"node", node},
                             {"failed", past.failed},
                             {"postponed", past.postponed},
                             {"run", past.run},
                             {"time", past.time},
                             {"digest", past.digest},
                             {"reason", past.reason}});
  return out;
}

std::string word_of_answer(const Answer& answer) {
  switch (answer.what) {
    case Do::run:
      return "run";
    case Do::wait:
      return std::string(to_string(answer.wait));
    case Do::stop:
      return std::string(to_string(answer.stop));
    case Do::done:
      return "done";
  }
  return "";
}

}  // namespace muster
