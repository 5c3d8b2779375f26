#include "controller/rollout/rollout_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json_dump.h"
#include "base/utf8.h"
#include "controller/rollout/next.h"

namespace muster::rollout {

MUSTER_RECORD(BatchRun, number, run, canary, images)
MUSTER_RECORD(Skip, reason, by, since, until)
MUSTER_RECORD(Past, sparse(accepted_in), sparse(tried_in), sparse(postponed), sparse(failed), sparse(before),
              sparse(digest), sparse(reason), sparse(run), sparse(time))
MUSTER_RECORD(Returned, before, reason)
MUSTER_RECORD(Record, id, approval, row, started, ended, night, window_until, why_paused, runs, before, left,
              sparse(images), sparse(returned), sparse(past), sparse(skips), sparse(window),
              sparse(last_window))

namespace {

Result<Row> read_row(const std::string& text) {
  TRY(const Json json, parse_json(text));
  return read_record<Row>(json, "rollout");
}

// Rows of earlier versions have a failed canary, and not that its image is held.
void add_held(Record& record) {
  if (!record.row || !record.row->held.empty()) return;
  for (const auto& [node, failed] : record.row->failed)
    for (const BatchRun& run : record.runs)
      if (const auto image = run.images.find(node);
          failed.canary && run.run == failed.run && image != run.images.end())
        record.row->held[image->second] = {node, failed.reason, image->second, failed.run};
}

// Earlier versions kept any length.
void shorten_reasons(Record& record) {
  for (auto& [node, returned] : record.returned) returned.reason = short_reason(returned.reason);
  if (!record.row) return;
  for (auto& [node, failed] : record.row->failed) failed.reason = short_reason(failed.reason);
  for (auto& [image, held] : record.row->held) held.reason = short_reason(held.reason);
}

Result<Record> read(const std::string& text) {
  TRY(const Json json, parse_json(text));
  TRY(Record record, read_record<Record>(json, "rollout"));
  add_held(record);
  shorten_reasons(record);
  return record;
}

// Records of earlier versions do not have it.
std::map<std::string, std::string> images_of(const Record& record) {
  if (!record.images.empty()) return record.images;
  std::map<std::string, std::string> out;
  for (const auto& [name, image] : record.approval.images) out[name] = image.digest;
  return out;
}

// The node's past as far as it still counts.
Past past_of(const Record& record, const Node& node) {
  const auto found = record.past.find(node.name);
  if (found == record.past.end()) return {};
  const Past& past = found->second;
  const bool works = node.state == NodeState::accepted || node.state == NodeState::degraded;
  if (past.before.empty() || past.before == node.image_now || !works) return past;
  return {.accepted_in = past.accepted_in};  // it was re-imaged by hand
}

// Value of Node::turn: a node that was given back has its turn 2, 4, 8 ... rollouts later.
int64_t turn_of(const Past& past) {
  const int64_t last = std::max(past.accepted_in, past.tried_in);
  return past.postponed == 0 ? last : last + (1 << std::min(past.postponed, 10));
}

void remember_begin(Record& record, const Node& node) {
  Past past = past_of(record, node);
  past.before = node.image_now;
  past.digest = node.image_wanted;
  record.past[node.name] = std::move(past);
}

void remember_end(Record& record, const std::string& node, int64_t run, TimeMs now) {
  const Row& row = *record.row;
  Past& past = record.past[node];
  const auto done = row.done.find(node);
  if (done != row.done.end() && done->second == run) {
    past = {.accepted_in = record.id};
    return;
  }
  const auto failed = row.failed.find(node);
  const auto postponed = row.postponed.find(node);
  const bool has_failed = failed != row.failed.end() && failed->second.run == run;
  if (!has_failed && (postponed == row.postponed.end() || postponed->second.run != run)) return;
  ++(has_failed ? past.failed : past.postponed);
  past.reason = has_failed ? failed->second.reason : postponed->second.reason;
  past.tried_in = record.id;
  past.run = run;
  past.time = now;
}

// What outlives a record.
Record following(const Record& before) {
  Record out;
  out.id = before.id + 1;
  out.past = before.past;
  out.skips = before.skips;
  out.last_window = before.last_window;
  return out;
}

// A rollout of these images, of which nothing has begun, behind `earlier`. An image that was held still is.
void begin_row(Record& record, const Approval& now, const std::string& target, const Record& earlier) {
  const auto held = held_images(earlier);
  record.returned = returned_nodes(earlier);
  record.row = begun(record.id, target);
  record.images.clear();
  for (const auto& [name, image] : now.images) record.images[name] = image.digest;
  for (const auto& [name, of_image] : held)
    if (const auto image = record.images.find(name); image != record.images.end())
      record.row->held[image->second] = of_image;
}

}  // namespace

Record approved(const Record& before, Approval approval) {
  Record out = following(before);
  out.approval = std::move(approval);
  return out;
}

Record at_start(const Record& record, const Approval& now, const std::string& target) {
  Record out = record;
  if (record.row) {
    auto again = started_again(*record.row, target);
    if (again.ok()) {
      out.row = std::move(again).value();
      return out;
    }
    out = following(record);
    out.approval = record.approval;
    out.night = record.night;
  }
  begin_row(out, now, target, record);
  return out;
}

Result<Record> with_builds(const Record& before, Record opened, const std::vector<std::string>& due) {
  if (before.row && before.row->batch)
    return fail(Code::conflict,
                fmt::format("run {} is still active: images are built behind it", before.row->batch->run));
  if (before.row && opened.id == before.id) {
    opened.row->id = ++opened.id;
    opened.started = opened.window.opened;
    opened.runs.clear();
    opened.returned = returned_nodes(before);
    opened.before.clear();
    opened.left.clear();
  }
  for (const auto& image : due) opened.window.builds[image] = {};
  opened.window.preparing = true;
  return opened;
}

Record after_builds(Record record, const Approval& now, const std::string& target) {
  record.window.preparing = false;
  if (record.row->target == target) return record;
  const bool paused = record.row->paused;
  begin_row(record, now, target, Record(record));
  record.row->paused = paused;
  record.window.first_batch = 1;
  return record;
}

Record with_batch(Record record, const View& view, const Answer& answer) {
  record.row = with_answer(with_batch(std::move(*record.row), view, answer), answer);
  for (const size_t at : answer.batch.nodes) {
    const Node& node = view.nodes[at];
    record.before.emplace(node.name, node.image_now);
    remember_begin(record, node);
  }
  return record;
}

Record refused_in(Record record, const View& view, const std::map<std::string, std::string>& reasons,
                  TimeMs now) {
  record.row = refused_in(std::move(*record.row), reasons, record.night);
  for (const Node& node : view.nodes) {
    if (!reasons.count(node.name)) continue;
    remember_begin(record, node);
    remember_end(record, node.name, 0, now);
  }
  return record;
}

Result<Record> judged(Record record, RunEnd end, TimeMs now) {
  if (!record.row || !record.row->batch) return fail(Code::conflict, "no batch is under way");
  const auto images = record.row->batch->images;
  end.night = record.night;
  if (end.cancelled && !record.row->paused)
    record.why_paused = fmt::format("run {} of the batch was cancelled", end.run);
  TRY(record.row, judged(std::move(*record.row), end));
  // One that others took out had no turn: it goes first when they give it back.
  for (const auto& [node, image] : images) {
    const auto found = end.nodes.find(node);
    if (found == end.nodes.end() || found->second.outcome != Outcome::left)
      remember_end(record, node, end.run, now);
  }
  return record;
}

void recall(View& view, const Record& record, TimeMs now) {
  const auto& named = record.approval.canaries;
  view.night = record.night;
  for (Node& node : view.nodes) {
    const Past past = past_of(record, node);
    node.failed_before = past.failed > 0;
    node.accepted_in = past.accepted_in;
    node.turn = turn_of(past);
    node.named_canary = std::find(named.begin(), named.end(), node.name) != named.end();
    node.skipped = is_skipped(record, node.name, now);
  }
}

std::map<std::string, Returned> returned_nodes(const Record& record) {
  std::map<std::string, Returned> out = record.returned;
  if (!record.row) return out;
  for (const auto& [node, run] : record.row->done) out.erase(node);
  for (const auto& [node, failure] : record.row->failed) {
    const auto before = record.before.find(node);
    if (failure.returned && !failure.canary && before != record.before.end())
      out[node] = {before->second, failure.reason};
  }
  return out;
}

std::map<std::string, HeldImage> held_images(const Record& record) {
  std::map<std::string, HeldImage> out;
  if (!record.row) return out;
  for (const auto& [name, digest] : images_of(record))
    if (const auto held = record.row->held.find(digest); held != record.row->held.end())
      out[name] = held->second;
  return out;
}

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
    case StopReason::canary_failed:   // held images stay held, and others may have been built
    case StopReason::no_canary:
      return "";
    case StopReason::budget:
      return "more nodes failed than `failure_budget` allows";
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
