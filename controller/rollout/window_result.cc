#include "controller/rollout/window_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "controller/rollout/next.h"
#include "controller/rollout/rollout_record.h"

namespace muster::rollout {
namespace {

constexpr size_t kNamed = 5;  // nodes and reasons in a detail

// A text of Record::left begins with its Reason.
std::string word_of_left(const std::string& text) { return text.substr(0, text.find(':')); }

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (size_t i = 0; i < std::min(words.size(), kNamed); ++i) out += (i > 0 ? ", " : "") + words[i];
  if (words.size() > kNamed) out += fmt::format(" and {} more", words.size() - kNamed);
  return out;
}

// Each reason with its number of nodes and the first of them.
std::string detail_of(const Record& record, const WindowResult& result, const LastLook& look) {
  std::vector<std::string> parts;
  for (const auto& [reason, count] : result.left)
    for (const auto& [node, text] : record.left) {
      if (word_of_left(text) != reason) continue;
      parts.push_back(fmt::format("{} {} ({}{})", count, reason, node, text.substr(reason.size())));
      break;
    }
  std::string out = joined(parts);
  if (!look.away.empty()) out += (out.empty() ? "" : "; ") + ("away: " + joined(look.away));
  return out;
}

void count(WindowResult& result, const Record& record) {
  std::set<std::string> updated, failed;
  for (const BatchRun& run : record.runs) {
    if (run.number < record.window.first_batch) continue;
    ++result.batches;
    for (const auto& [node, image] : run.images) {
      const auto done = record.row->done.find(node);
      const auto bad = record.row->failed.find(node);
      if (done != record.row->done.end() && done->second == run.run) updated.insert(node);
      if (bad != record.row->failed.end() && bad->second.run == run.run) failed.insert(node);
    }
  }
  result.updated = static_cast<int64_t>(updated.size());
  result.failed = static_cast<int64_t>(failed.size());
  for (const auto& [node, text] : record.left) ++result.left[word_of_left(text)];
}

void count_builds(WindowResult& result, const Window& window) {
  TimeMs built = window.opened;
  for (const auto& [image, build] : window.builds) {
    built = std::max(built, build.ended == 0 ? result.ended : build.ended);
    if (build.ended == 0)
      result.unbuilt[image] = build.error.empty() ? "the window was over first" : build.error;
    else if (!build.error.empty())
      result.unbuilt[image] = build.error;
  }
  result.building = built - window.opened;
}

std::string detail_of_builds(const WindowResult& result) {
  std::vector<std::string> parts;
  for (const auto& [image, why] : result.unbuilt) parts.push_back(image + ": " + why);
  return joined(parts);
}

std::string names_of_unbuilt(const WindowResult& result) {
  std::vector<std::string> images;
  for (const auto& [image, why] : result.unbuilt) images.push_back(image);
  return joined(images);
}

// ", images were not built (cpu, gpu)", or nothing.
std::string and_unbuilt(const WindowResult& result) {
  const std::string images = names_of_unbuilt(result);
  return images.empty() ? "" : ", images were not built (" + images + ")";
}

// The reason of most nodes.
std::string most_frequent(const std::map<std::string, int64_t>& left) {
  std::pair<int64_t, std::string> most;
  for (const auto& [reason, nodes] : left)
    if (reason != to_string(Reason::skipped)) most = std::max(most, {nodes, reason});
  return most.second;
}

std::string why_left(const Record& record, const WindowResult& result, const LastLook& look) {
  if (span_of(record.window) == 0) return "clock";
  if (!look.trouble.empty()) return "error";
  if (look.wait.empty() || look.wait == to_string(WaitFor::next_window)) return most_frequent(result.left);
  return look.wait;
}

std::pair<WindowOutcome, std::string> outcome_of(const Record& record, const WindowResult& result,
                                                 const LastLook& look) {
  const Row& row = *record.row;
  if (row.stage == Stage::stopped) return {WindowOutcome::stopped, std::string(to_string(row.stop))};
  if (row.paused && row.stage != Stage::done) return {WindowOutcome::paused, "paused"};
  if (result.failed > 0) return {WindowOutcome::partial, std::string(to_string(Reason::failed))};
  if (record.window.preparing) return {WindowOutcome::nothing, why_left(record, result, look)};
  const std::string most = most_frequent(result.left);
  const bool needed = !most.empty() || !look.trouble.empty();
  if (needed && result.updated == 0) return {WindowOutcome::nothing, why_left(record, result, look)};
  if (!result.unbuilt.empty()) return {WindowOutcome::partial, std::string(to_string(WaitFor::images))};
  if (!needed) return {WindowOutcome::done, ""};
  if (row.stage == Stage::done || !row.failed.empty() || !row.held.empty())
    return {WindowOutcome::partial, most};
  if (!record.window.unwritten.empty()) return {WindowOutcome::partial, "prefetch"};
  return {WindowOutcome::progress, why_left(record, result, look)};
}

// A timer that did not elapse leaves nothing to note. Windows are missed by nodes that wait, and by images
// that windows build. "" if one is open, or was opened in the day before.
std::string without_window(const Record& record, TimeMs now) {
  const std::string state = state_of(record);
  const bool missed = state == "approved" || state == to_string(Stage::canary) ||
                      state == to_string(Stage::batches) ||
                      (state == to_string(Stage::done) && record.approval.rebuild != Rebuild::never);
  TimeMs last = std::max(record.approval.time, record.window.opened);
  if (record.last_window) last = std::max(last, record.last_window->opened);
  if (!missed || last > now - kDay || record.window_until > now) return "";
  return "no window of the rollout was opened since " + to_iso8601(last);
}

// Of the record's last night, with nothing counted yet.
WindowResult empty_result(const Record& record, TimeMs opened, TimeMs now) {
  WindowResult out;
  out.rollout = record.id;
  out.night = record.night;
  out.opened = opened;
  out.ended = now;
  if (record.last_window) {
    const bool again = record.last_window->rollout == record.id && record.last_window->night == record.night;
    out.idle_before = again ? record.last_window->idle_before : idle_windows(*record.last_window);
  }
  return out;
}

}  // namespace

WindowResult without_approval(const Record& record, const std::string& why, TimeMs now) {
  WindowResult out = empty_result(record, now, now);
  out.outcome = WindowOutcome::nothing;
  out.why = "approval";
  out.detail = why;
  return out;
}

WindowResult result_of(const Record& record, const LastLook& look, TimeMs now) {
  WindowResult out = empty_result(record, record.window.opened, now);
  count(out, record);
  count_builds(out, record.window);
  std::tie(out.outcome, out.why) = outcome_of(record, out, look);
  if (out.why == "error")
    out.detail = look.trouble;
  else if (out.outcome == WindowOutcome::paused)
    out.detail = record.why_paused;
  else if (out.why == to_string(WaitFor::images))
    out.detail = detail_of_builds(out);
  else if (out.why == "prefetch")
    out.detail = fmt::format("{}: {}", record.window.unwritten.begin()->first,
                             record.window.unwritten.begin()->second);
  else
    out.detail = detail_of(record, out, look);
  return out;
}

bool is_noted(const Record& record) {
  if (!record.last_window || record.last_window->rollout != record.id) return false;
  if (record.last_window->night != record.night) return false;
  WindowResult now;
  count(now, record);
  return now.batches == record.last_window->batches;
}

int64_t idle_windows(const WindowResult& result) {
  const bool idle = result.updated == 0 && result.outcome != WindowOutcome::done;
  return idle ? result.idle_before + 1 : 0;
}

std::map<std::string, Unbuilt> unbuilt_images(const Record& record) {
  std::map<std::string, Unbuilt> out;
  if (record.last_window)
    for (const auto& [image, why] : record.last_window->unbuilt)
      out[image] = {why, record.last_window->opened};
  for (const auto& [image, build] : record.window.builds) {
    if (build.ended == 0) continue;
    out.erase(image);
    if (!build.error.empty()) out[image] = {build.error, record.window.opened};
  }
  return out;
}

std::string window_line(const Record& record, TimeMs now) {
  if (!record.last_window || record.last_window->ended <= now - kDay) return without_window(record, now);
  const WindowResult& result = *record.last_window;
  int64_t left = 0;
  for (const auto& [reason, count] : result.left) left += count;
  std::string out =
      fmt::format("night {}: {}{}, {} nodes updated", result.night, word_of(kWindowOutcomes, result.outcome),
                  result.why.empty() ? "" : " (" + result.why + ")", result.updated);
  if (result.failed > 0) out += fmt::format(", {} failed", result.failed);
  if (left > 0) out += fmt::format(", {} wait", left);
  out += and_unbuilt(result);
  // A newer record may have been approved by others.
  const std::string by = result.rollout == record.id ? record.approval.by : "";
  return by.empty() ? out : out + "; approved by " + by;
}

std::string rollout_problem(const Record& record) {
  const std::string state = state_of(record);
  constexpr const char* kSee = ": `muster rollout status`";
  if (state == "paused") return fmt::format("paused ({}){}", record.why_paused, kSee);
  // With an approval, what came of windows before it is over.
  if (!record.last_window || record.last_window->ended < record.approval.time) return "";
  const WindowResult& result = *record.last_window;
  const int64_t idle = idle_windows(result);
  const std::string times = idle > 1 ? fmt::format(", {} nights in a row", idle) : "";
  if (result.outcome == WindowOutcome::stopped) return fmt::format("stopped ({}){}", result.why, kSee);
  if (result.outcome == WindowOutcome::nothing)
    return fmt::format("no node was updated in its last window ({}){}{}{}", result.why, times,
                       and_unbuilt(result), kSee);
  if (result.failed > 0)
    return fmt::format("nodes failed in its last window ({}){}{}", result.failed, and_unbuilt(result), kSee);
  if (!result.unbuilt.empty())
    return fmt::format("images were not built in its last window ({}){}", names_of_unbuilt(result), kSee);
  if (result.why == "prefetch") return fmt::format("a slot could not be written ahead{}", kSee);
  if (result.outcome == WindowOutcome::partial)
    return fmt::format("nodes are left without their image ({}){}", result.why, kSee);
  return "";
}

}  // namespace muster::rollout
