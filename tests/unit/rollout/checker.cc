#include "tests/unit/rollout/checker.h"

#include <algorithm>

namespace muster::rollout::sim {

void Checker::fail(const std::string& what, size_t node) {
  if (!bad.empty()) return;
  bad = what + (node == SIZE_MAX ? "" : " (" + view_.nodes[node].name + ")") + ", night " +
        std::to_string(model_.night) + ", rollout " + std::to_string(id_);
}

Checker::Checker(const Model& model)
    : model_(model),
      view_(model.view),
      memory_(view_.nodes.size()),
      waits_(view_.nodes.size()),
      failed_(view_.nodes.size()),
      done_(view_.nodes.size()),
      postponed_(view_.nodes.size()) {}

void Checker::approved(const std::vector<std::string>& named) {
  named_ = {named.begin(), named.end()};
  counts.named += static_cast<int>(named.size());
  held_ = {0, 0, 0};
  approved_spec_ = model_.spec;
  approved_ = model_.target();
  paused_ = false;
  id_ = 0;
}

void Checker::opened(bool same) {
  opened_ = model_.time;
  opened_wrong_ = wrong_ = model_.clock_off != 0;
  boots_ = model_.boots;
  fresh_ = !same || (prepares_ && fresh_);
  prepares_ = true;
}

void Checker::prepared(int64_t id) {
  prepares_ = false;
  id_ = id;
  if (!fresh_ && target_ == model_.target()) started_ = id;  // it goes on, maybe under another id
  start();
}

void Checker::unprepared() {
  prepares_ = false;
  ++window_;
  if (fresh_) forget();
}

void Checker::start() {
  ++window_;
  const std::string target = model_.target();
  if (id_ == started_ && target == target_) return proofs_.clear();
  started_ = id_;
  target_ = target;
  forget();
}

void Checker::forget() {
  proofs_.clear();
  failures_ = 0;
  canary_batch_ = false;
  failed_.assign(view_.nodes.size(), 0);
  done_.assign(view_.nodes.size(), 0);
  postponed_.assign(view_.nodes.size(), 0);
  accepted_canaries_.clear();
}

void Checker::refused(bool batch) {
  ++counts.refused;
  const int budget = view_.policy.failure_budget;
  const bool covered = model_.rebuilds ? approved_spec_ == model_.spec : approved_ == model_.target();
  if (batch || paused_ || !covered || (id_ && budget >= 0 && failures_ > budget)) return;
  Checker then = *this;  // as at the beginning of the next window, maybe of a rollout of other builds
  then.start();
  for (size_t at = 0; at < view_.nodes.size(); ++at)
    if (then.ready(at) && then.proof(view_.nodes[at].image_wanted) >= 0)
      fail("a start is refused, and something could go on", at);
  if (!needs_held()) fail("a start is refused without a reason");
}

void Checker::judged(const ModelRun& run) {
  paused_ = paused_ || run.cancelled;
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    const size_t at = run.nodes[i];
    Memory& memory = memory_[at];
    switch (run.ends[i]) {
      case Outcome::accepted:
        done_[at] = 1;
        ++counts.updated;
        if (canary_batch_) ++accepted_canaries_[run.images[i]];
        memory = {};
        memory.image_in = memory.turn = id_;
        progress_ = true;
        break;
      case Outcome::returned:
      case Outcome::quarantined:
        failed_[at] = 1;
        failures_ += !canary_batch_;
        if (canary_batch_) held_[static_cast<size_t>(image_of(view_.nodes[at]))] = 1, ++counts.held;
        memory.failed = true;
        memory.turn = id_;
        progress_ = true;
        break;
      case Outcome::jobs:
      case Outcome::unfinished:
        postponed_[at] = window_;
        ++memory.given_back;
        memory.turn = id_;
        progress_ = true;
        break;
      case Outcome::left:  // no turn of its own: it is due as before
        postponed_[at] = window_;
        progress_ = true;
        ++counts.left;
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

bool Checker::skipped(size_t at) const {
  const auto found = skips_.find(at);
  return found != skips_.end() && (found->second == 0 || model_.wall() < found->second);
}

Checker::Memory Checker::past(size_t at) const {
  const Node& node = view_.nodes[at];
  const Memory& memory = memory_[at];
  const bool works = node.state == NodeState::accepted || node.state == NodeState::degraded;
  if (memory.before.empty() || node.image_now == memory.before || !works) return memory;
  Memory out;
  out.image_in = out.turn = memory.image_in;
  return out;
}

bool Checker::eligible(size_t at) const {
  const Node& node = view_.nodes[at];
  return scope(node) && node.has_bmc && node.groups.empty() && node.special == Special::no &&
         node.way != Way::none && !skipped(at) && (!failed_before(at) || is_named(at));
}

bool Checker::ready(size_t at) const {
  const Node& node = view_.nodes[at];
  return scope(node) && node.image_now != node.image_wanted && !node.image_now.empty() && !away(node) &&
         !under_way(node) && node.way != Way::none && !failed_[at] && postponed_[at] != window_ &&
         !stops_a_group(node) && !skipped(at) && !is_held(node);
}

bool Checker::candidate(size_t at) const {
  const std::string& image = view_.nodes[at].image_wanted;
  if (!ready(at) || !eligible(at) || proof(image) != 0) return false;
  if (is_named(at)) return true;
  for (size_t other = 0; !named_.empty() && other < view_.nodes.size(); ++other)
    if (is_named(other) && view_.nodes[other].image_wanted == image && ready(other) && eligible(other))
      return false;
  return true;
}

bool Checker::delayed(size_t at) const {
  for (size_t other = 0; other < view_.nodes.size(); ++other)
    if (view_.nodes[other].image_wanted == view_.nodes[at].image_wanted && postponed_[other] == window_ &&
        eligible(other) && !away(view_.nodes[other]) && !failed_[other])
      return true;
  return false;
}

bool Checker::ordinary(size_t at) const {
  return ready(at) && view_.nodes[at].special == Special::no && proof(view_.nodes[at].image_wanted) == 1;
}

bool Checker::needs_held() const {
  for (size_t at = 0; at < view_.nodes.size(); ++at) {
    const Node& node = view_.nodes[at];
    if (scope(node) && node.image_now != node.image_wanted && is_held(node) && !skipped(at) &&
        !under_way(node))
      return true;
  }
  return false;
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
    if (under_way(node) || !eligible(at) || failed_[at]) continue;
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
  wrong_ = wrong_ || model_.clock_off != 0;
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

void Checker::stop(const Row& row, const Answer& answer) {
  const int budget = view_.policy.failure_budget;
  if (row.stage == Stage::stopped) return;  // decided before
  bool right = false;
  if (answer.stop == StopReason::budget) right = budget >= 0 && failures_ > budget;
  if (answer.stop == StopReason::target_changed) right = target_ != model_.target();
  if (answer.stop == StopReason::canary_failed) {
    right = needs_held();
    for (size_t at = 0; at < view_.nodes.size(); ++at)
      if (ready(at) && proof(view_.nodes[at].image_wanted) >= 0) right = false;
  }
  if (!right) fail("stopped without its reason");
}

void Checker::no_node_forgotten(const Row& row, const Answer& answer) {
  if (target_ != model_.target()) return fail("it should have stopped");
  if (view_.policy.failure_budget >= 0 && failures_ > view_.policy.failure_budget)
    return fail("it should have stopped for its budget");
  const bool may_begin = must_be_open() && !row.paused && view_.active_run == 0;
  bool waiting = false, any = false, ordinary = false;
  size_t special = SIZE_MAX, one = SIZE_MAX;
  const std::vector<int> none(view_.groups.size(), 0);
  for (size_t at = 0; at < view_.nodes.size(); ++at) {
    const Node& node = view_.nodes[at];
    waiting = waiting || (scope(node) && postponed_[at] == window_ && !away(node) && !failed_[at] &&
                          node.image_now != node.image_wanted && !node.image_now.empty() && !skipped(at) &&
                          node.way != Way::none && !stops_a_group(node) && !is_held(node));
    if (!ready(at) || proof(node.image_wanted) < 0) continue;
    any = true;
    ordinary = ordinary || node.special == Special::no;
    const bool turn = proof(node.image_wanted) == 1 || candidate(at);
    if (node.special == Special::no && turn && groups_allow(node, none)) one = at;
    if (node.special != Special::no && (special == SIZE_MAX || node.special < view_.nodes[special].special))
      special = at;
  }
  if (answer.what == Do::done && (any || waiting || needs_held())) return fail("done, and not all is");
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
    counts.no_canary += left->reason == Reason::no_canary;
    counts.skipped += left->reason == Reason::skipped;
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
    case Reason::canary_failed:
      return is_held(node);
    case Reason::skipped:
      return skipped(left.node);
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
      return postponed_[left.node] == window_;
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
    case Reason::turn:
      return node.idle && !chosen_.empty() && past(left.node).image_in > 0;
    case Reason::last:
      return node.special != Special::no || failed_before(left.node);
    case Reason::held_back:
      return answer.what != Do::run;
  }
  return false;
}

std::vector<std::string> Checker::to_name() {
  std::vector<std::string> out;
  proofs_.clear();
  std::set<std::string> images;
  for (size_t at = 0; at < view_.nodes.size(); ++at) {
    const Node& node = view_.nodes[at];
    const bool could_be = scope(node) && node.has_bmc && node.groups.empty() && node.special == Special::no &&
                          node.way != Way::none && !skipped(at);
    if (!could_be || !failed_before(at) || away(node) || node.image_now == node.image_wanted) continue;
    bool other = false;
    for (size_t i = 0; i < view_.nodes.size(); ++i)
      other = other || (view_.nodes[i].image_wanted == node.image_wanted && !failed_before(i) && eligible(i));
    if (!other && images.insert(node.image_wanted).second) out.push_back(node.name);
  }
  return out;
}

void Checker::dusk() {
  full_ = progress_ = false;
  proofs_.clear();
  for (size_t at = 0; at < view_.nodes.size(); ++at)
    waits_[at].dusk = model_.calm() && must_be_open() && id_ && ordinary(at) && !failed_before(at) &&
                      !model_.truth[at].endless && view_.nodes[at].groups.empty();
}

// In the calm each node has its turn after as many nights with a full batch as the nodes need for theirs, and
// some as often as it was given back; and each night brings the cluster nearer to the spec.
void Checker::dawn(bool goes_on) {
  proofs_.clear();
  const int rounds = (scope_ + most() - 1) / most();
  for (size_t at = 0; at < view_.nodes.size(); ++at) {
    if (view_.active_run == 0 && model_.truth[at].paused && !away(view_.nodes[at]))
      fail("left drained, and not named", at);
    Wait& wait = waits_[at];
    if (!wait.dusk || !goes_on || !ordinary(at)) {
      wait.nights = 0;
      continue;
    }
    if (!progress_) fail("a calm night without progress", at);
    wait.nights += full_;
    if (wait.nights > rounds + past(at).due() - past(at).turn)
      fail("it waits for more nights than all nodes need", at);
  }
}

void Checker::end() {
  if (model_.rebuilds || view_.nodes.size() > 20) return;
  for (size_t at = 0; at < view_.nodes.size(); ++at)
    if (waits_[at].dusk && ordinary(at)) fail("it does not end", at);
}

void Checker::record(const Record& record) {
  if (!record.row || record.id != id_) return;  // approved, and not started yet
  const Row& row = *record.row;
  size_t failed = 0, done = 0;
  for (size_t at = 0; at < view_.nodes.size(); ++at) {
    failed += failed_[at];
    done += done_[at];
    const std::string& name = view_.nodes[at].name;
    if (failed_[at] && !row.failed.count(name)) fail("a failure is forgotten", at);
    if (done_[at] && !row.done.count(name)) fail("a node that is done is forgotten", at);
    if (postponed_[at] && !row.postponed.count(name)) fail("given back, and not in the row", at);
    if (skips_.count(at) != record.skips.count(name)) fail("a skip is forgotten", at);
  }
  if (row.failed.size() != failed || row.done.size() != done) fail("the row says what did not happen");
}

}  // namespace muster::rollout::sim
