#include "tests/unit/rollout/checker.h"

#include <algorithm>

namespace muster::rollout::sim {

void Checker::fail(const std::string& what, size_t node) {
  if (!bad.empty()) return;
  bad = what + (node == SIZE_MAX ? "" : " (" + view_.nodes[node].name + ")") + ", night " +
        std::to_string(view_.night) + ", rollout " + std::to_string(id_);
}

void Checker::new_rollout(int64_t id) {
  id_ = id;
  target_ = view_.target;
  paused_ = false;
  failures_ = 0;
  canary_failed_ = canary_batch_ = false;
  failed_.assign(view_.nodes.size(), 0);
  done_.assign(view_.nodes.size(), 0);
  postponed_.assign(view_.nodes.size(), 0);
  accepted_canaries_.clear();
}

void Checker::judged(const ModelRun& run) {
  paused_ = paused_ || run.cancelled;
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    const size_t at = run.nodes[i];
    switch (run.ends[i]) {
      case Outcome::accepted:
        done_[at] = 1;
        ++updated;
        if (canary_batch_) ++accepted_canaries_[run.images[i]];
        break;
      case Outcome::returned:
      case Outcome::quarantined:
        failed_[at] = 1;
        ++failures_;
        canary_failed_ = canary_failed_ || canary_batch_;
        break;
      case Outcome::jobs:
      case Outcome::unfinished:
        postponed_[at] = view_.night;
        break;
      case Outcome::held:
      case Outcome::not_begun:
        break;
    }
  }
  // No node is left drained by a run that ended, unless it was cancelled, and then it counts as away.
  for (size_t at = 0; at < view_.nodes.size(); ++at)
    if (view_.active_run == 0 && model_.truth[at].paused && !away(view_.nodes[at]))
      fail("paused without a run", at);
}

bool Checker::scope(const Node& node) const {
  for (const auto& role : view_.policy.roles)
    if (role == node.role) return true;
  return false;
}

bool Checker::away(const Node& node) const {
  if (!node.online || node.maintenance || node.on_trial) return true;
  return node.state != NodeState::accepted && node.state != NodeState::degraded;
}

bool Checker::under_way(const Node& node) const { return under_way_ && under_way_->count(node.name); }

bool Checker::stops_a_group(const Node& node) const {
  return std::any_of(node.groups.begin(), node.groups.end(),
                     [&](size_t g) { return view_.groups[g].can_miss == 0; });
}

bool Checker::eligible(const Node& node) const {
  return scope(node) && node.has_bmc && node.groups.empty() && node.special == Special::no &&
         node.way != Way::none;
}

bool Checker::ready(size_t at) const {
  const Node& node = view_.nodes[at];
  return scope(node) && node.image_now != node.image_wanted && !node.image_now.empty() && !away(node) &&
         !under_way(node) && node.way != Way::none && !failed_[at] && postponed_[at] != view_.night &&
         !stops_a_group(node);
}

bool Checker::groups_allow(const Node& node, const std::vector<int>& taken) const {
  return std::all_of(node.groups.begin(), node.groups.end(), [&](size_t g) {
    return view_.groups[g].healed && missing_[g] + taken[g] + 1 <= view_.groups[g].can_miss;
  });
}

int Checker::most() const {
  const MaxUnavailable& m = view_.policy.max_unavailable;
  if (m.percent == 0) return m.count;
  const int part = scope_ * m.percent / 100;
  return part == 0 ? 1 : part;
}

void Checker::count_away(const Row& row) {
  scope_ = away_ = 0;
  proofs_.clear();
  under_way_ = row.batch ? &row.batch->images : nullptr;
  canary_under_way_ = row.batch && row.batch->canary;
  missing_.assign(view_.groups.size(), 0);
  for (const Node& node : view_.nodes) {
    scope_ += scope(node);
    if (!away(node) && !under_way(node)) continue;
    away_ += scope(node);
    for (const size_t g : node.groups) ++missing_[g];
  }
}

int Checker::proof(const std::string& image) const {
  const auto known = proofs_.find(image);
  if (known != proofs_.end()) return known->second;
  return proofs_[image] = proof_now(image);
}

int Checker::proof_now(const std::string& image) const {
  const auto accepted = accepted_canaries_.find(image);
  const int count = accepted == accepted_canaries_.end() ? 0 : accepted->second;
  if (count >= 1 && count >= view_.policy.canary) return 1;
  bool here = false, gone = false, runs = count > 0;
  for (size_t at = 0; at < view_.nodes.size(); ++at) {
    const Node& node = view_.nodes[at];
    if (node.image_wanted != image || !scope(node)) continue;
    if (under_way(node)) here = here || canary_under_way_;
    if (under_way(node) || !eligible(node) || failed_[at]) continue;
    if (node.image_now == image)
      runs = runs || !away(node);
    else if (away(node))
      gone = true;
    else if (!node.image_now.empty())
      here = true;
  }
  if (!here && runs) return 1;
  return here || gone ? 0 : -1;
}

void Checker::answer(const Row& row, const Answer& answer) {
  count_away(row);
  taken_.assign(view_.groups.size(), 0);
  for (const size_t at : answer.batch.nodes)
    for (const size_t g : view_.nodes[at].groups) ++taken_[g];
  if (row.batch && (answer.what != Do::wait || answer.wait != WaitFor::run))
    fail("something else than to wait for the batch under way");
  if (answer.what == Do::run) run(answer);
  if (answer.what == Do::stop) stop(row, answer);
  if (answer.what != Do::run && !answer.batch.nodes.empty()) fail("a batch that does not begin has nodes");
  const bool looked = answer.what == Do::wait || (answer.what == Do::done && row.stage != Stage::done);
  if (looked && !row.batch) no_node_forgotten(row, answer);
  reasons(answer);
}

void Checker::run(const Answer& answer) {
  const Batch& batch = answer.batch;
  if (batch.nodes.empty()) return fail("an empty batch");
  if (canary_failed_) fail("a batch behind a failed canary");
  if (paused_) fail("a batch in a pause");
  if (target_ != view_.target) fail("a batch of another spec than the approved one");
  const int budget = view_.policy.failure_budget;
  if (budget >= 0 && failures_ > budget) fail("a batch above the failure budget");
  if (!batch.canary && batch.failure_budget != (budget < 0 ? -1 : budget - failures_))
    fail("the run's budget is not what is left of the rollout's");
  if (!view_.window_open) fail("a batch outside the window");
  if (view_.active_run) fail("a batch beside another run");
  if (away_ + static_cast<int>(batch.nodes.size()) > most()) fail("more away than max_unavailable");
  for (size_t i = 0; i < batch.nodes.size(); ++i) {
    const size_t at = batch.nodes[i];
    if (i && batch.nodes[i - 1] >= at) fail("a batch that is not in order");
    if (!ready(at)) fail("a node that must not be taken", at);
    for (const size_t g : view_.nodes[at].groups) {
      if (!view_.groups[g].healed) fail("of a group that is not healed", at);
      if (missing_[g] + taken_[g] > view_.groups[g].can_miss) fail("of a group that cannot miss it", at);
    }
    if (view_.nodes[at].idle != view_.nodes[batch.nodes[0]].idle) fail("idle and busy nodes are mixed", at);
  }
  if (batch.canary)
    canary(batch);
  else if (view_.nodes[batch.nodes[0]].special != Special::no)
    special(batch);
  else
    others(batch);
  prefetch(batch);
  canary_batch_ = batch.canary;
  ++batches;
  canaries += batch.canary;
  largest = std::max(largest, static_cast<int>(batch.nodes.size()));
}

void Checker::canary(const Batch& batch) {
  std::map<std::string, int> now = accepted_canaries_;
  for (const size_t at : batch.nodes) {
    const Node& node = view_.nodes[at];
    if (!eligible(node)) fail("a canary without a BMC, or one that serves something", at);
    if (proof(node.image_wanted) != 0) fail("a canary of an image that is proven", at);
    if (++now[node.image_wanted] > std::max(1, view_.policy.canary)) fail("more canaries than asked for", at);
  }
  if (batch.failure_budget != 0) fail("a canary may fail");
  const bool idle = view_.nodes[batch.nodes[0]].idle;
  const bool room = away_ + static_cast<int>(batch.nodes.size()) < most();
  for (size_t at = 0; at < view_.nodes.size(); ++at) {
    const Node& node = view_.nodes[at];
    if (std::binary_search(batch.nodes.begin(), batch.nodes.end(), at)) continue;
    if (!ready(at) || !eligible(node) || proof(node.image_wanted) != 0) continue;
    if (node.idle && !idle) fail("a busy canary before an idle one", at);
    if (room && node.idle == idle && now[node.image_wanted] < std::max(1, view_.policy.canary))
      fail("fewer canaries than there could be", at);
  }
}

void Checker::others(const Batch& batch) {
  for (const size_t at : batch.nodes) {
    if (view_.nodes[at].special != Special::no) fail("a special node with others", at);
    if (proof(view_.nodes[at].image_wanted) != 1) fail("an image that is not proven", at);
  }
  could_be_added(batch);
}

void Checker::could_be_added(const Batch& batch) {
  if (away_ + static_cast<int>(batch.nodes.size()) >= most()) return;
  const bool idle = view_.nodes[batch.nodes[0]].idle;
  for (size_t at = 0; at < view_.nodes.size(); ++at) {
    const Node& node = view_.nodes[at];
    if (std::binary_search(batch.nodes.begin(), batch.nodes.end(), at)) continue;
    if (!ready(at) || node.special != Special::no || proof(node.image_wanted) != 1) continue;
    if (node.idle && !idle && groups_allow(node, std::vector<int>(taken_.size(), 0)))
      fail("busy nodes go before an idle one", at);
    if (node.idle == idle && groups_allow(node, taken_)) fail("a smaller batch than there could be", at);
  }
}

void Checker::special(const Batch& batch) {
  if (batch.nodes.size() != 1) fail("a special node is not alone");
  if (proof(view_.nodes[batch.nodes[0]].image_wanted) != 1) fail("an image that is not proven, special");
  for (size_t at = 0; at < view_.nodes.size(); ++at) {
    const Node& node = view_.nodes[at];
    if (!ready(at) || proof(node.image_wanted) < 0) continue;
    if (node.special == Special::no) fail("a special node before another one", at);
    if (node.special < view_.nodes[batch.nodes[0]].special) fail("special nodes in the wrong order", at);
  }
}

void Checker::prefetch(const Batch& batch) {
  if (batch.canary && !batch.prefetch.empty()) fail("prefetch behind a canary");
  if (static_cast<int>(batch.prefetch.size()) > most()) fail("more prefetched than a batch has");
  prefetched += static_cast<int>(batch.prefetch.size());
  for (const size_t at : batch.prefetch) {
    const Node& node = view_.nodes[at];
    if (!ready(at) || node.way != Way::in_place) fail("prefetched, and does not go in place", at);
    if (proof(node.image_wanted) != 1) fail("prefetched, and not proven", at);
    if (std::binary_search(batch.nodes.begin(), batch.nodes.end(), at)) fail("in the batch, prefetched", at);
  }
}

void Checker::stop(const Row& row, const Answer& answer) {
  const int budget = view_.policy.failure_budget;
  if (row.stage == Stage::stopped) return;  // decided before
  bool right = true;
  if (answer.stop == StopReason::canary_failed) right = canary_failed_;
  if (answer.stop == StopReason::budget) right = budget >= 0 && failures_ > budget;
  if (answer.stop == StopReason::target_changed) right = row.target != view_.target;
  if (answer.stop == StopReason::no_canary) {
    for (size_t at = 0; at < view_.nodes.size(); ++at)
      if (ready(at) && proof(view_.nodes[at].image_wanted) >= 0) right = false;
    right = right && std::count(done_.begin(), done_.end(), 1) == 0;
  }
  if (!right || answer.stop == StopReason::none) fail("stopped without its reason");
}

void Checker::no_node_forgotten(const Row& row, const Answer& answer) {
  if (canary_failed_ || row.target != view_.target) return fail("it should have stopped");
  if (view_.policy.failure_budget >= 0 && failures_ > view_.policy.failure_budget)
    return fail("it should have stopped for its budget");
  const bool may_begin = view_.window_open && !row.paused && view_.active_run == 0;
  bool waiting = false, any = false, ordinary = false;
  size_t special = SIZE_MAX, one = SIZE_MAX;
  const std::vector<int> none(view_.groups.size(), 0);
  for (size_t at = 0; at < view_.nodes.size(); ++at) {
    const Node& node = view_.nodes[at];
    waiting = waiting || (scope(node) && postponed_[at] == view_.night && !away(node) && !failed_[at] &&
                          node.image_now != node.image_wanted && !node.image_now.empty());
    if (!ready(at) || proof(node.image_wanted) < 0) continue;
    any = true;
    ordinary = ordinary || node.special == Special::no;
    const bool turn = proof(node.image_wanted) == 1 || eligible(node);
    if (node.special == Special::no && turn && groups_allow(node, none)) one = at;
    if (node.special != Special::no && (special == SIZE_MAX || node.special < view_.nodes[special].special))
      special = at;
  }
  if (answer.what == Do::done && (any || waiting)) return fail("done, and not all is");
  if (away_ >= most() || !may_begin) return;
  if (one != SIZE_MAX) fail("it waits, and a node could be taken", one);
  if (special == SIZE_MAX || ordinary || proof(view_.nodes[special].image_wanted) != 1) return;
  if (groups_allow(view_.nodes[special], none)) fail("it waits, and a special node could be taken", special);
}

void Checker::reasons(const Answer& answer) {
  auto left = answer.left.begin();
  chosen_ = answer.batch.nodes;
  for (const Left& l : answer.left) {
    if (l.reason != Reason::held_back) continue;
    chosen_.push_back(l.node);
    for (const size_t g : view_.nodes[l.node].groups) ++taken_[g];
  }
  if (!chosen_.empty() && away_ + static_cast<int>(chosen_.size()) > most())
    fail("more are held back than fit");
  for (size_t at = 0; at < view_.nodes.size(); ++at) {
    const Node& node = view_.nodes[at];
    const bool listed = left != answer.left.end() && left->node == at;
    const bool in_batch =
        std::binary_search(answer.batch.nodes.begin(), answer.batch.nodes.end(), at) || under_way(node);
    const bool needs = scope(node) && node.image_now != node.image_wanted && !in_batch;
    if (needs != listed) return fail("left without a reason, or a reason without need", at);
    if (!listed) continue;
    if (!reason_holds(*left, answer))
      return fail("not for this reason: " + std::string(to_string(left->reason)), at);
    ++left;
  }
  if (left != answer.left.end()) fail("reasons that are not in order");
}

bool Checker::reason_holds(const Left& left, const Answer& answer) const {
  const Node& node = view_.nodes[left.node];
  const auto is_canary = [&](size_t at) { return proof(view_.nodes[at].image_wanted) == 0; };
  const auto group = static_cast<size_t>(left.group);
  switch (left.reason) {
    case Reason::none:
      return false;
    case Reason::failed:
      return failed_[left.node];
    case Reason::no_way:
      return node.way == Way::none;
    case Reason::unknown_image:
      return node.image_now.empty();
    case Reason::needed:
      return view_.groups[group].can_miss == 0;
    case Reason::no_canary:
      return proof(node.image_wanted) == -1;
    case Reason::skipped:
      return node.skipped;
    case Reason::held:
      return node.held_by == HeldBy::an_operator && node.state == NodeState::quarantined;
    case Reason::quarantined:
      return node.held_by == HeldBy::run && node.state == NodeState::quarantined;
    case Reason::maintenance:
      return node.maintenance || node.state == NodeState::drained;
    case Reason::installing:
      return node.state == NodeState::installing;
    case Reason::not_installed:
      return node.state == NodeState::discovered;
    case Reason::silent:
      return !node.online;
    case Reason::on_trial:
      return node.on_trial;
    case Reason::jobs:
    case Reason::cancelled:
    case Reason::refused:
      return postponed_[left.node] == view_.night;
    case Reason::canary:
      return proof(node.image_wanted) == 0 || std::any_of(chosen_.begin(), chosen_.end(), is_canary);
    case Reason::unavailable:
      return away_ + static_cast<int>(chosen_.size()) >= most();
    case Reason::section:
      return missing_[group] + taken_[group] >= view_.groups[group].can_miss;
    case Reason::healing:
      return !view_.groups[group].healed;
    case Reason::busy:
      return !node.idle && !chosen_.empty() && view_.nodes[chosen_[0]].idle;
    case Reason::last:
      return node.special != Special::no;
    case Reason::held_back:
      return answer.what != Do::run;
  }
  return false;
}

void Checker::row(const Row& row) {
  if (row.id != id_) return fail("a row of another rollout");
  size_t failed = 0, done = 0;
  for (size_t at = 0; at < view_.nodes.size(); ++at) {
    failed += failed_[at];
    done += done_[at];
    if (failed_[at] && !row.failed.count(view_.nodes[at].name)) fail("a failure is forgotten", at);
    if (done_[at] && !row.done.count(view_.nodes[at].name)) fail("a node that is done is forgotten", at);
    if (postponed_[at] && !row.postponed.count(view_.nodes[at].name))
      fail("given back, and not in the row", at);
  }
  if (row.failed.size() != failed || row.done.size() != done) fail("the row says what did not happen");
}

}  // namespace muster::rollout::sim
