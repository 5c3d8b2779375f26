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

using Places = std::vector<size_t>;  // indexes into View::nodes

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

// The first of the node's groups that cannot do without it beside the nodes that are away or taken, or is not
// healed; -1: none.
int group_in_need(const Choice& c, size_t at) {
  for (const size_t g : c.node(at).groups)
    if (!c.view.groups[g].healed || c.s.missing[g] + c.taken[g] >= c.view.groups[g].can_miss)
      return static_cast<int>(g);
  return -1;
}

// False if it must wait, with the reason recorded.
bool take(Choice& c, size_t at) {
  if (c.full()) {
    wait_for(c, at, Reason::unavailable);
    bind(c, Bound::max_unavailable);
    return false;
  }
  if (const int group = group_in_need(c, at); group >= 0) {
    const bool healed = c.view.groups[static_cast<size_t>(group)].healed;
    wait_for(c, at, healed ? Reason::section : Reason::healing, group);
    bind(c, healed ? Bound::section : Bound::healing, group);
    return false;
  }
  for (const size_t g : c.node(at).groups) ++c.taken[g];
  c.batch.nodes.push_back(at);
  wait_for(c, at, Reason::none);
  return true;
}

// Takes as many canaries of `some` as their images still need.
void take_canaries(Choice& c, const Places& some) {
  std::vector<int> needs;
  for (const ImageProof& image : c.s.images) needs.push_back(image.wanted - image.proven - image.under_way);
  for (const size_t at : some)
    if (int& need = needs[static_cast<size_t>(c.s.image[at])]; need > 0) need -= take(c, at);
  if (c.batch.nodes.empty()) return;
  c.batch.canary = true;
  bind(c, Bound::canary);
}

// Possible canaries, the best first. A node that an operator named comes first, then in-place nodes: if they
// fail, they go back to their old system. Others of the image of a named node are left out.
Places possible_canaries(const Choice& c) {
  Places some;
  std::vector<char> named(c.s.images.size(), 0);
  for (size_t at = 0; at < c.view.nodes.size(); ++at) {
    if (!c.s.can[at] || c.image(at).is_proven() || !may_be_canary(c.node(at))) continue;
    some.push_back(at);
    if (c.node(at).named_canary) named[static_cast<size_t>(c.s.image[at])] = 1;
  }
  std::erase_if(
      some, [&](size_t at) { return named[static_cast<size_t>(c.s.image[at])] && !c.node(at).named_canary; });
  std::stable_sort(some.begin(), some.end(), [&](size_t a, size_t b) {
    const auto key = [&](size_t at) { return std::pair(c.node(at).way != Way::in_place, c.node(at).turn); };
    return key(a) < key(b);
  });
  return some;
}

// Returns the nodes that need no special treatment, those that have waited longest first. Nodes whose image
// is not proven, or cannot be, get that reason unless they have one.
Places ordinary(Choice& c) {
  Places out;
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
  std::stable_sort(out.begin(), out.end(),
                   [&](size_t a, size_t b) { return c.node(a).turn < c.node(b).turn; });
  return out;
}

// Moves the nodes for which `which` is true to the returned list. Both keep their order.
template <typename Which>
Places split(Places& some, Which&& which) {
  const auto rest = std::stable_partition(some.begin(), some.end(), [&](size_t at) { return !which(at); });
  Places out(rest, some.end());
  some.erase(rest, some.end());
  return out;
}

// Nodes that may be in one batch, and the lowest turn among those that their groups can do without.
struct Class {
  Places nodes;
  bool canary = false;
  int64_t turn = 0;
};

// The classes of nodes in the order in which they have their turn. Idle canaries are first, because all
// others of their image wait for them. Then the class of the node that has waited longest; or else busy
// canaries, idle nodes, busy nodes. Idle nodes that got an image while the busy ones waited go after these;
// that they were given back before does not count, as they are idle now. The busy canaries of an image that
// one delayed in this window already go after the other images' nodes; nodes that failed before, last.
std::vector<Class> classes(Choice& c) {
  const auto busy = [&](size_t at) { return !c.node(at).idle; };
  const auto lowest = [&](const Places& some, int64_t Node::*turn) {
    int64_t out = INT64_MAX;
    for (const size_t at : some)
      if (group_in_need(c, at) < 0) out = std::min(out, c.node(at).*turn);
    return out;
  };
  Places canaries = possible_canaries(c), others = ordinary(c);
  Places busy_canaries = split(canaries, busy);
  Places late = split(busy_canaries, [&](size_t at) { return c.image(at).next_window > 0; });
  Places failed = split(others, [&](size_t at) { return c.node(at).failed_before; });
  Places busy_others = split(others, busy), busy_failed = split(failed, busy);
  const int64_t oldest = lowest(busy_others, &Node::turn);
  Places newer = split(others, [&](size_t at) { return c.node(at).accepted_in > oldest; });
  std::vector<Class> by_turn = {{busy_canaries, true, lowest(busy_canaries, &Node::turn)},
                                {others, false, lowest(others, &Node::accepted_in)},
                                {busy_others, false, oldest},
                                {newer, false, lowest(newer, &Node::accepted_in)}};
  // One of which no node can be taken is tried first: that gives the reasons.
  const auto key = [](const Class& one) { return one.turn == INT64_MAX ? 0 : one.turn; };
  std::stable_sort(by_turn.begin(), by_turn.end(),
                   [&](const Class& a, const Class& b) { return key(a) < key(b); });
  std::vector<Class> out = {{canaries, true}};
  out.insert(out.end(), by_turn.begin(), by_turn.end());
  for (Class& last : std::vector<Class>{{late, true}, {failed}, {busy_failed}})
    out.push_back(std::move(last));
  return out;
}

// A node waits that is of a later class than the batch.
void wait_for_class(Choice& c, size_t at, bool canary) {
  if (canary || c.batch.canary) return wait_for(c, at, Reason::canary);
  const Node& node = c.node(at);
  wait_for(c, at, node.failed_before ? Reason::last : node.idle ? Reason::turn : Reason::busy);
  if (!node.failed_before) bind(c, Bound::idle);
}

// Takes nodes of the first class of which any can be taken.
void take_class(Choice& c) {
  const std::vector<Class> all = classes(c);
  size_t at = 0;
  for (; at < all.size() && c.batch.nodes.empty(); ++at)
    if (all[at].canary)
      take_canaries(c, all[at].nodes);
    else
      for (const size_t node : all[at].nodes) take(c, node);
  for (; at < all.size(); ++at)
    for (const size_t node : all[at].nodes) wait_for_class(c, node, all[at].canary);
}

// True if no more ordinary nodes can be taken in this window.
bool special_may_go(const Choice& c) {
  for (size_t at = 0; at < c.view.nodes.size(); ++at)
    if (c.s.can[at] && c.node(at).special == Special::no) return false;
  return true;
}

void take_special(Choice& c) {
  Places some;
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
  take_class(c);
  take_special(c);
  for (const size_t at : c.batch.nodes) s.can[at] = 0;
  std::sort(c.batch.nodes.begin(), c.batch.nodes.end());
  return std::move(c.batch);
}

constexpr Words<Reason, 26> kReasonWords = {{{Reason::none, ""},
                                             {Reason::failed, "failed"},
                                             {Reason::no_way, "no-way"},
                                             {Reason::unknown_image, "unknown-image"},
                                             {Reason::needed, "needed"},
                                             {Reason::no_canary, "no-canary"},
                                             {Reason::canary_failed, "canary-failed"},
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
                                             {Reason::turn, "turn"},
                                             {Reason::last, "last"},
                                             {Reason::held_back, "held-back"}}};
constexpr Words<Bound, 7> kBoundWords = {{{Bound::all, "all"},
                                          {Bound::canary, "canary"},
                                          {Bound::max_unavailable, "max-unavailable"},
                                          {Bound::section, "section"},
                                          {Bound::healing, "healing"},
                                          {Bound::idle, "idle"},
                                          {Bound::alone, "alone"}}};
constexpr Words<WaitFor, 9> kWaitForWords = {{{WaitFor::nothing, ""},
                                              {WaitFor::run, "run"},
                                              {WaitFor::other_run, "other-run"},
                                              {WaitFor::resume, "resume"},
                                              {WaitFor::window, "window"},
                                              {WaitFor::next_window, "night"},
                                              {WaitFor::healing, "healing"},
                                              {WaitFor::nodes, "nodes"},
                                              {WaitFor::images, "images"}}};

struct Waiting {
  bool healing = false, nodes = false, window = false;
};

// What agents report decides whether a node is left for it.
bool is_reported(Reason reason) {
  return reason == Reason::silent || reason == Reason::on_trial || reason == Reason::maintenance;
}

Waiting waiting_for(const View& view, const Survey& s) {
  Waiting w;
  for (const Reason reason : s.reason) {
    w.healing = w.healing || reason == Reason::healing;
    w.nodes = w.nodes || reason == Reason::unavailable || reason == Reason::section ||
              (view.unsure && is_reported(reason));
    w.window = w.window || is_of_this_window(reason);
  }
  // Canaries that wait for the next window are counted above; others wait for what their canary waits for.
  for (const ImageProof& image : s.images)
    w.nodes = w.nodes || (!image.held && !image.is_proven() && image.next_window == 0 && image.away > 0);
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

void answer_without_batch(Answer& a, const View& view, const Survey& s) {
  const Waiting w = waiting_for(view, s);
  if (w.healing) return wait(a, WaitFor::healing);
  if (w.nodes) return wait(a, WaitFor::nodes);
  if (w.window) return wait(a, WaitFor::next_window);
  const auto is_missing = [](const ImageProof& image) { return image.held && image.needed; };
  if (std::any_of(s.images.begin(), s.images.end(), is_missing)) return stop(a, StopReason::canary_failed);
  a.what = Do::done;
}

StopReason why_stopped(const View& view, const Row& row) {
  if (row.stage == Stage::stopped) return row.stop;
  const int budget = view.policy.failure_budget;
  if (budget >= 0 && failures_of(row) > budget) return StopReason::budget;
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
  return view.policy.failure_budget - failures_of(row);
}

Places to_prefetch(const View& view, const Batch& batch, Survey s) {
  if (batch.canary) return {};
  const Batch following = choose_batch(view, s);
  if (following.canary) return {};  // their image is not proven
  Places out = following.nodes;
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
    answer_without_batch(a, view, s);
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
