#include "tests/sim/operator.h"

#include <algorithm>
#include <utility>

namespace muster::sim {
namespace {

constexpr int kMostPlans = 6;  // as in cli/carry_out.cc

}  // namespace

void Operator::give_command(TimeMs now) {
  request_ = std::exchange(next_, {});
  request_.reimage = reimage_ && request_.kind == RequestKind::up;
  given_at_ = now;
  under_way_ = true;
  woke_ = nothing_left_ = false;
  plans_ = 0;
  left_out_.clear();
}

bool Operator::takes(const Plan& plan) {
  ++plans_;
  for (const auto& node : plan.left_out)
    if (std::find(left_out_.begin(), left_out_.end(), node) == left_out_.end()) left_out_.push_back(node);
  if (plan.empty()) {
    end_command(true);
    return false;
  }
  if (plan.kind == PlanKind::wake && woke_) {  // they had their time
    if (!request_.nodes.empty()) silent_.insert(plan.nodes.begin(), plan.nodes.end());
    end_command(false);
    return false;
  }
  return true;
}

bool Operator::goes_on(const Plan& plan, RunState ended) {
  const bool discovers = plan.kind == PlanKind::discover, wakes = plan.kind == PlanKind::wake;
  woke_ = woke_ || wakes;
  if (under_way_ && plans_ < kMostPlans && (wakes || (discovers && ended != RunState::failed))) return true;
  const bool found_none = request_.nodes.empty() && discovers && ended == RunState::failed;
  const bool again = found_none && plan.nodes == not_found_;
  if (found_none) not_found_ = plan.nodes;
  end_command(again);
  return false;
}

void Operator::end_command(bool idle) {
  under_way_ = false;
  nothing_left_ = idle && request_.nodes.empty() && left_out_.empty();
  if (!request_.nodes.empty() || left_out_.empty()) return;  // all nodes are next
  for (const auto& node : left_out_)
    if (silent_.count(node)) next_.nodes.push_back(node);
  if (next_.nodes.empty()) {
    next_.nodes = left_out_;
  } else {
    next_.kind = RequestKind::reimage;
    silent_.clear();
  }
}

}  // namespace muster::sim
