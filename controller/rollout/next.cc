#include "controller/rollout/next.h"

#include <algorithm>

#include "base/words.h"
#include "controller/rollout/batch.h"

namespace muster::rollout {
namespace {

constexpr Words<Reason, 23> kReasonWords = {{{Reason::none, ""},
                                             {Reason::failed, "failed"},
                                             {Reason::no_way, "no-way"},
                                             {Reason::unknown_image, "unknown-image"},
                                             {Reason::needed, "needed"},
                                             {Reason::no_canary, "no-canary"},
                                             {Reason::held, "held"},
                                             {Reason::quarantined, "quarantined"},
                                             {Reason::maintenance, "maintenance"},
                                             {Reason::installing, "installing"},
                                             {Reason::not_installed, "not-installed"},
                                             {Reason::silent, "silent"},
                                             {Reason::on_trial, "on-trial"},
                                             {Reason::jobs, "jobs"},
                                             {Reason::cancelled, "cancelled"},
                                             {Reason::refused, "refused"},
                                             {Reason::canary, "canary"},
                                             {Reason::unavailable, "unavailable"},
                                             {Reason::section, "section"},
                                             {Reason::healing, "healing"},
                                             {Reason::busy, "busy"},
                                             {Reason::last, "last"},
                                             {Reason::held_back, "held-back"}}};
constexpr Words<Bound, 7> kBoundWords = {{{Bound::all, "all"},
                                          {Bound::canary, "canary"},
                                          {Bound::max_unavailable, "max-unavailable"},
                                          {Bound::section, "section"},
                                          {Bound::healing, "healing"},
                                          {Bound::idle, "idle"},
                                          {Bound::alone, "alone"}}};
constexpr Words<WaitFor, 8> kWaitForWords = {{{WaitFor::nothing, ""},
                                              {WaitFor::run, "run"},
                                              {WaitFor::other_run, "other-run"},
                                              {WaitFor::resume, "resume"},
                                              {WaitFor::window, "window"},
                                              {WaitFor::next_window, "night"},
                                              {WaitFor::healing, "healing"},
                                              {WaitFor::nodes, "nodes"}}};

// What the rollout waits for if no node can be chosen.
struct Waiting {
  bool healing = false, nodes = false, window = false, no_canary = false;
};

Waiting waiting_for(const Survey& s) {
  Waiting w;
  for (const Reason reason : s.reason) {
    w.healing = w.healing || reason == Reason::healing;
    w.nodes = w.nodes || reason == Reason::unavailable || reason == Reason::section;
    w.window = w.window || is_of_this_window(reason);
    w.no_canary = w.no_canary || reason == Reason::no_canary;
  }
  // Nodes that wait for a canary wait for what it waits for; canaries that wait for the next window are
  // counted above.
  for (const ImageProof& image : s.images)
    w.nodes = w.nodes || (!image.is_proven() && image.next_window == 0 && image.away > 0);
  return w;
}

void wait(Answer& a, WaitFor what) {
  a.what = Do::wait;
  a.wait = what;
}

void stop(Answer& a, StopReason why) {
  a.what = Do::stop;
  a.stop = why;
}

void answer_without_batch(Answer& a, const Survey& s, const Row& row) {
  const Waiting w = waiting_for(s);
  if (w.healing) return wait(a, WaitFor::healing);
  if (w.nodes) return wait(a, WaitFor::nodes);
  if (w.window) return wait(a, WaitFor::next_window);
  if (w.no_canary && row.done.empty()) return stop(a, StopReason::no_canary);
  a.what = Do::done;
}

StopReason why_stopped(const View& view, const Row& row) {
  if (row.stage == Stage::stopped) return row.stop;
  const auto of_canary = [](const auto& failed) { return failed.second.canary; };
  if (std::any_of(row.failed.begin(), row.failed.end(), of_canary)) return StopReason::canary_failed;
  const int budget = view.policy.failure_budget;
  if (budget >= 0 && static_cast<int>(row.failed.size()) > budget) return StopReason::budget;
  return row.target == view.target ? StopReason::none : StopReason::target_changed;
}

// Returns why a batch must not begin now although nodes were chosen.
WaitFor why_held_back(const View& view, const Row& row) {
  if (row.paused) return WaitFor::resume;
  if (view.active_run != 0) return WaitFor::other_run;
  return view.window_open ? WaitFor::nothing : WaitFor::window;
}

int budget_left(const View& view, const Row& row, const Batch& batch) {
  if (batch.canary) return 0;
  if (view.policy.failure_budget < 0) return -1;
  return view.policy.failure_budget - static_cast<int>(row.failed.size());
}

std::vector<size_t> to_prefetch(const View& view, const Batch& batch, Survey s) {
  if (batch.canary) return {};
  std::vector<size_t> out = choose_batch(view, s).nodes;
  std::erase_if(out, [&](size_t at) { return view.nodes[at].way != Way::in_place; });
  return out;
}

std::vector<Left> left_of(const Survey& s) {
  std::vector<Left> out;
  for (size_t at = 0; at < s.reason.size(); ++at)
    if (s.reason[at] != Reason::none) out.push_back({at, s.reason[at], s.group[at]});
  return out;
}

}  // namespace

Answer next(const View& view, const Row& row) {
  Answer a;
  Survey s = survey(view, row);
  Batch batch = choose_batch(view, s);
  const StopReason stopped = why_stopped(view, row);
  const WaitFor held = why_held_back(view, row);
  if (row.batch)
    wait(a, WaitFor::run);  // even if the rollout stops after this run
  else if (row.stage == Stage::done)
    a.what = Do::done;
  else if (stopped != StopReason::none)
    stop(a, stopped);
  else if (batch.nodes.empty())
    answer_without_batch(a, s, row);
  else if (held != WaitFor::nothing)
    wait(a, held);
  else
    a.what = Do::run;
  if (a.what != Do::run) {
    for (const size_t at : batch.nodes) s.reason[at] = Reason::held_back;
    a.left = left_of(s);
    return a;
  }
  a.left = left_of(s);
  batch.failure_budget = budget_left(view, row, batch);
  batch.prefetch = to_prefetch(view, batch, std::move(s));
  a.batch = std::move(batch);
  return a;
}

std::string_view to_string(Reason reason) { return word_of(kReasonWords, reason); }
std::string_view to_string(Bound bound) { return word_of(kBoundWords, bound); }
std::string_view to_string(WaitFor what) { return word_of(kWaitForWords, what); }

}  // namespace muster::rollout
