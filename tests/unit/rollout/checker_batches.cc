// What a batch may be.
#include <algorithm>

#include "tests/unit/rollout/checker.h"

namespace muster::rollout::sim {

void Checker::run(const Answer& answer) {
  const Batch& batch = answer.batch;
  if (batch.nodes.empty()) return fail("an empty batch");
  if (paused_) fail("a batch in a pause");
  if (target_ != model_.target()) fail("a batch of other images than the approved ones");
  const int budget = view_.policy.failure_budget;
  if (budget >= 0 && failures_ > budget) fail("a batch above the failure budget");
  if (!batch.canary && batch.failure_budget != (budget < 0 ? -1 : budget - failures_))
    fail("the run's budget is not what is left of the rollout's");
  if (!may_be_open()) fail("a batch outside the window");
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
    memory_[at] = past(at);
    memory_[at].before = view_.nodes[at].image_now;
    waits_[at].turns = 0;
  }
  if (batch.canary)
    canary(batch);
  else if (view_.nodes[batch.nodes[0]].special != Special::no)
    special(batch);
  else
    others(batch);
  prefetch(batch);
  canary_batch_ = batch.canary;
  ++counts.batches;
  counts.canaries += batch.canary;
}

void Checker::canary(const Batch& batch) {
  std::map<std::string, int> now = accepted_canaries_;
  for (const size_t at : batch.nodes) {
    const Node& node = view_.nodes[at];
    if (failed_before(at) && !is_named(at)) fail("a canary that failed before", at);
    if (!eligible(at)) fail("a canary without a BMC, or one that serves something", at);
    if (!candidate(at)) fail("a canary of an image that is proven, or not the one that was named", at);
    if (++now[node.image_wanted] > std::max(1, view_.policy.canary)) fail("more canaries than asked for", at);
  }
  if (batch.failure_budget != 0) fail("a canary may fail");
  const bool idle = view_.nodes[batch.nodes[0]].idle;
  const bool late = !idle && delayed(batch.nodes[0]);
  const bool room = away_ + static_cast<int>(batch.nodes.size()) < most();
  int64_t oldest = INT64_MAX;
  for (size_t at = 0; at < view_.nodes.size(); ++at)
    if (candidate(at) && !delayed(at)) oldest = std::min(oldest, past(at).due());
  for (size_t at = 0; at < view_.nodes.size(); ++at) {
    const Node& node = view_.nodes[at];
    if (std::binary_search(batch.nodes.begin(), batch.nodes.end(), at)) continue;
    if (late && ordinary(at) && !failed_before(at) && groups_allow(node, std::vector<int>(taken_.size(), 0)))
      fail("a second busy canary of an image before nodes of others", at);
    if (!idle && !late && ordinary(at) && !failed_before(at) &&
        groups_allow(node, std::vector<int>(taken_.size(), 0)) &&
        oldest > (node.idle ? past(at).image_in : past(at).due()))
      fail("a busy canary before a node that has waited longer", at);
    if (!candidate(at)) continue;
    if (node.idle && !idle) fail("a busy canary before an idle one", at);
    if (room && node.idle == idle && (idle || delayed(at) == late) &&
        now[node.image_wanted] < std::max(1, view_.policy.canary))
      fail("fewer canaries than there could be", at);
  }
}

void Checker::others(const Batch& batch) {
  const bool failed = failed_before(batch.nodes[0]);
  for (const size_t at : batch.nodes) {
    if (view_.nodes[at].special != Special::no) fail("a special node with others", at);
    if (proof(view_.nodes[at].image_wanted) != 1) fail("an image that is not proven", at);
    if (failed_before(at) != failed) fail("a node that failed before with others", at);
  }
  could_be_added(batch);
  canaries_wait(batch);
  count_turns(batch);
}

void Checker::could_be_added(const Batch& batch) {
  const bool idle = view_.nodes[batch.nodes[0]].idle, failed = failed_before(batch.nodes[0]);
  const bool room = away_ + static_cast<int>(batch.nodes.size()) < most();
  const std::vector<int> none(taken_.size(), 0);
  int64_t oldest = INT64_MAX;  // turn of a busy node that could go
  for (size_t at = 0; at < view_.nodes.size(); ++at)
    if (ordinary(at) && !view_.nodes[at].idle && !failed_before(at) && groups_allow(view_.nodes[at], none))
      oldest = std::min(oldest, past(at).due());
  const auto newer = [&](size_t at) { return !failed_before(at) && past(at).image_in > oldest; };
  for (const size_t at : batch.nodes)
    if (idle && newer(at)) fail("an idle node with a newer image goes before a busy one", at);
  for (size_t at = 0; at < view_.nodes.size(); ++at) {
    const Node& node = view_.nodes[at];
    if (std::binary_search(batch.nodes.begin(), batch.nodes.end(), at) || !ordinary(at)) continue;
    if (failed && !failed_before(at) && groups_allow(node, none))
      fail("a node that failed before goes before another one", at);
    if (failed_before(at) != failed) continue;
    if (node.idle && newer(at)) continue;
    if (node.idle && !idle && groups_allow(node, none)) fail("busy nodes go before an idle one", at);
    if (room && node.idle == idle && groups_allow(node, taken_))
      fail("a smaller batch than there could be", at);
  }
}

// Canaries that could go wait only if they have jobs, and one of their image was tried in this window or
// others have waited longer.
void Checker::canaries_wait(const Batch& batch) {
  const bool idle = view_.nodes[batch.nodes[0]].idle, failed = failed_before(batch.nodes[0]);
  int64_t oldest = INT64_MAX;
  for (size_t at = 0; at < view_.nodes.size(); ++at)
    if (ordinary(at) && view_.nodes[at].idle == idle)
      oldest = std::min(oldest, idle ? past(at).image_in : past(at).due());
  for (size_t at = 0; at < view_.nodes.size(); ++at) {
    if (!candidate(at)) continue;
    if (view_.nodes[at].idle) fail("an idle canary waits", at);
    if (failed) fail("a node that failed before goes before a canary", at);
    const Memory memory = past(at);
    if (!delayed(at) && oldest >= memory.due()) fail("a canary waits for newer nodes", at);
  }
}

// No node waits for more turns of others than two for each (a batch that is begun again counts twice): none
// is forgotten while images are built again.
void Checker::count_turns(const Batch& batch) {
  const std::vector<int> none(taken_.size(), 0);
  const int size = static_cast<int>(batch.nodes.size());
  full_ = full_ || size >= most();
  for (size_t at = 0; at < view_.nodes.size(); ++at) {
    const bool waits = ordinary(at) && !failed_before(at) && past(at).given_back == 0 &&
                       groups_allow(view_.nodes[at], none) &&
                       !std::binary_search(batch.nodes.begin(), batch.nodes.end(), at);
    int& turns = waits_[at].turns;
    turns = waits ? turns + size : 0;
    if (turns > 2 * scope_ + most()) fail("others had their turn twice while it waited", at);
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
  counts.prefetched += static_cast<int>(batch.prefetch.size());
  for (const size_t at : batch.prefetch) {
    const Node& node = view_.nodes[at];
    if (!ready(at) || node.way != Way::in_place) fail("prefetched, and does not go in place", at);
    if (proof(node.image_wanted) != 1) fail("prefetched, and not proven", at);
    if (std::binary_search(batch.nodes.begin(), batch.nodes.end(), at)) fail("in the batch, prefetched", at);
  }
}

}  // namespace muster::rollout::sim
