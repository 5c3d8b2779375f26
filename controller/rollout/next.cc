#include "controller/rollout/next.h"

#include <algorithm>
#include <utility>

#include "base/words.h"
#include "controller/rollout/survey.h"

namespace muster::rollout {
namespace {

// Changes view and row as if all nodes of the batch under way had been accepted.
void come_through(View& view, Row& row) {
  for (Node& node : view.nodes) {
    const auto found = row.batch->images.find(node.name);
    if (found == row.batch->images.end()) continue;
    node.image_now = found->second;
    node.state = NodeState::accepted;
    node.online = true;
    node.on_trial = node.maintenance = false;
    row.done[node.name] = row.batch->run;
    if (row.batch->canary) ++row.proven[node.image_now];
  }
  row.batch.reset();
}

struct Choice {
  const View& view;
  Survey& s;
  Batch batch;
  std::vector<int> taken = std::vector<int>(s.missing.size(), 0);  // members taken, per group

  const Node& node(size_t at) const { return view.nodes[at]; }
  const ImageProof& image(size_t at) const { return s.images[static_cast<size_t>(s.image[at])]; }
  bool full() const { return static_cast<int>(batch.nodes.size()) >= s.room; }
};

void wait_for(Choice& c, size_t at, Reason why, int group = -1) {
  c.s.reason[at] = why;
  c.s.group[at] = group;
}

// The first limit is kept, except that max_unavailable replaces any other, because it applies to all nodes.
void bind(Choice& c, Bound bound, int group = -1) {
  if (c.batch.bound != Bound::all && bound != Bound::max_unavailable) return;
  c.batch.bound = bound;
  c.batch.bound_group = group;
}

// True if the node's groups can do without it and the nodes that are away or taken; else records the reason.
bool groups_allow(Choice& c, size_t at) {
  for (const size_t g : c.node(at).groups) {
    const Group& group = c.view.groups[g];
    const bool room = c.s.missing[g] + c.taken[g] < group.can_miss;
    if (group.healed && room) continue;
    wait_for(c, at, group.healed ? Reason::section : Reason::healing, static_cast<int>(g));
    bind(c, group.healed ? Bound::section : Bound::healing, static_cast<int>(g));
    return false;
  }
  return true;
}

// False if it must wait, with the reason recorded.
bool take(Choice& c, size_t at) {
  if (c.full()) {
    wait_for(c, at, Reason::unavailable);
    bind(c, Bound::max_unavailable);
    return false;
  }
  if (!groups_allow(c, at)) return false;
  for (const size_t g : c.node(at).groups) ++c.taken[g];
  c.batch.nodes.push_back(at);
  wait_for(c, at, Reason::none);
  return true;
}

// Idle nodes come before busy ones, and are never in the same batch. Of the busy ones, those that were
// returned to service unchanged the fewest times come first: otherwise nodes with jobs that never end would
// be chosen in every window, and no others.
void take_idle_or_busy(Choice& c, const std::vector<size_t>& some) {
  std::vector<size_t> busy;
  for (const size_t at : some)
    if (c.node(at).idle)
      take(c, at);
    else
      busy.push_back(at);
  if (!c.batch.nodes.empty()) {
    for (const size_t at : busy) wait_for(c, at, Reason::busy);
    if (!busy.empty()) bind(c, Bound::idle);
    return;
  }
  std::stable_sort(busy.begin(), busy.end(), [&](size_t a, size_t b) { return c.s.times[a] < c.s.times[b]; });
  for (const size_t at : busy) take(c, at);
}

// Takes as many canaries as each image still needs. In-place nodes come first: if they fail, they go back to
// their old system. Then those that were returned to service unchanged the fewest times, as above.
void take_canaries(Choice& c) {
  std::vector<size_t> some;
  for (size_t at = 0; at < c.view.nodes.size(); ++at)
    if (c.s.can[at] && !c.image(at).is_proven() && may_be_canary(c.node(at))) some.push_back(at);
  std::stable_sort(some.begin(), some.end(), [&](size_t a, size_t b) {
    const auto key = [&](size_t at) { return std::pair(c.node(at).way != Way::in_place, c.s.times[at]); };
    return key(a) < key(b);
  });
  const bool any_idle = std::any_of(some.begin(), some.end(), [&](size_t at) { return c.node(at).idle; });
  std::vector<int> needs;
  for (const ImageProof& image : c.s.images) needs.push_back(image.wanted - image.proven - image.under_way);
  for (const size_t at : some)
    if (int& need = needs[static_cast<size_t>(c.s.image[at])]; need > 0 && c.node(at).idle == any_idle)
      need -= take(c, at);
  if (c.batch.nodes.empty()) return;
  c.batch.canary = true;
  bind(c, Bound::canary);
}

// Returns the nodes that need no special treatment, in the order of names. Nodes whose image is not proven,
// or cannot be, get that reason unless they have one.
std::vector<size_t> ordinary(Choice& c) {
  std::vector<size_t> out;
  for (size_t at = 0; at < c.view.nodes.size(); ++at) {
    if (!c.s.can[at]) continue;
    const ImageProof& image = c.image(at);
    if (!image.is_possible())
      wait_for(c, at, Reason::no_canary), c.s.can[at] = 0;
    else if (image.is_proven() && c.node(at).special == Special::no)
      out.push_back(at);
    else if (!image.is_proven() && c.s.reason[at] == Reason::none)
      wait_for(c, at, Reason::canary);
  }
  return out;
}

// True if no more ordinary nodes can be taken in this window.
bool special_may_go(const Choice& c) {
  for (size_t at = 0; at < c.view.nodes.size(); ++at)
    if (c.s.can[at] && c.node(at).special == Special::no) return false;
  return true;
}

void take_special(Choice& c) {
  std::vector<size_t> some;
  for (size_t at = 0; at < c.view.nodes.size(); ++at)
    if (c.s.can[at] && c.node(at).special != Special::no) some.push_back(at);
  std::stable_sort(some.begin(), some.end(),
                   [&](size_t a, size_t b) { return c.node(a).special < c.node(b).special; });
  const bool turn = c.batch.nodes.empty() && special_may_go(c);
  for (const size_t at : some) {
    if (!c.image(at).is_proven()) continue;  // `ordinary` gave the reason
    // Special nodes are taken in order: the others wait until the first one is updated, even while that one
    // has to wait for its canary or its group.
    if (!turn || at != some.front())
      wait_for(c, at, Reason::last);
    else if (take(c, at))
      c.batch.bound = Bound::alone;
  }
}

// Returns the next batch; it has no nodes if none can begin. Clears the chosen nodes in `s.can`, and writes
// to `s.reason` and `s.group` why the others wait. Does not fill in the failure budget and the prefetch.
Batch choose_batch(const View& view, Survey& s) {
  Choice c{view, s, {}};
  take_canaries(c);
  const bool canaries = !c.batch.nodes.empty();
  for (const size_t at : c.batch.nodes) s.can[at] = 0;
  std::vector<size_t> others = ordinary(c);
  if (canaries)
    for (const size_t at : others) wait_for(c, at, Reason::canary);
  else
    take_idle_or_busy(c, others);
  take_special(c);
  for (const size_t at : c.batch.nodes) s.can[at] = 0;
  std::sort(c.batch.nodes.begin(), c.batch.nodes.end());
  return std::move(c.batch);
}

constexpr Words<Reason, 24> kReasonWords = {{{Reason::none, ""},
                                             {Reason::failed, "failed"},
                                             {Reason::no_way, "no-way"},
                                             {Reason::unknown_image, "unknown-image"},
                                             {Reason::needed, "needed"},
                                             {Reason::no_canary, "no-canary"},
                                             {Reason::skipped, "skipped"},
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
  // Canaries that wait for the next window are counted above; others wait for what their canary waits for.
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

Forecast forecast(View view, Row row) {
  view.window_open = true;
  view.active_run = 0;
  row.paused = false;
  for (Group& group : view.groups) group.healed = true;
  if (row.batch) come_through(view, row);
  Forecast out;
  // The loop ends, because each batch has at least one node and no node is taken twice.
  while ((out.end = next(view, row)).what == Do::run) {
    out.batches.push_back(out.end.batch);
    row = with_batch(std::move(row), view, out.end);
    come_through(view, row);
  }
  return out;
}

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
