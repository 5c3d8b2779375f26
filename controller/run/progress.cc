#include "controller/run/progress.h"

#include <algorithm>

#include "controller/nodes/states.h"

namespace muster {
namespace {

NodeRunState shown(const NodeRun& node) {
  using Stage = NodeRun::Stage;
  switch (node.stage) {
    case Stage::done:
      return node.returned() ? NodeRunState::returned : NodeRunState::done;
    case Stage::quarantined:
      return NodeRunState::quarantined;
    case Stage::not_started:
      return NodeRunState::not_started;
    case Stage::pending:
      return NodeRunState::waiting;
    case Stage::committing:
    case Stage::powering:
    case Stage::looking:
    case Stage::awaiting:
    case Stage::pausing:
      return NodeRunState::running;
  }
  return NodeRunState::running;
}

}  // namespace

Json node_progress(const NodeRun& node, DurationMs ahead) {
  Json out = {{"node", node.name},
              {"state", to_string(shown(node))},
              {"reason", node.reason},
              {"index", node.index},
              {"of", node.way().size()}};
  if (node.returning && !node.over()) out["returning"] = true;
  if (node.acts()) {
    const Action& action = node.action();
    out["action"] = action.id;
    out["phase"] = action.phase;
    out["title"] = action.title;
    out["attempt"] = node.latest.number;
    out["since"] = node.latest.started.ms + ahead;
  }
  if (node.attempt.progress.total > 0)
    out["percent"] = std::min(100.0, 100.0 * node.attempt.progress.done / node.attempt.progress.total);
  if (!node.shown.unit.empty()) out["unit"] = node.shown.unit;
  if (!node.attempt.progress.text.empty()) out["text"] = node.attempt.progress.text;
  if (node.attempt.progress.last_at > node.attempt.progress.first_at &&
      node.attempt.progress.done > node.attempt.progress.first_done) {
    const double rate = (node.attempt.progress.done - node.attempt.progress.first_done) * 1000.0 /
                        static_cast<double>(node.attempt.progress.last_at - node.attempt.progress.first_at);
    out["rate"] = rate;
    if (node.attempt.progress.total > node.attempt.progress.done)
      out["eta_ms"] =
          static_cast<int64_t>((node.attempt.progress.total - node.attempt.progress.done) / rate * 1000.0);
  }
  if (node.control.by == Switch::person && node.stage == NodeRun::Stage::powering) out["by_hand"] = true;
  if (!node.shown.wait.reason.empty()) out["wait"] = to_json(node.shown.wait, ahead);
  return out;
}

std::optional<DurationMs> Spans::median(ActionKind kind) const {
  const auto found = took_.find(kind);
  if (found == took_.end() || found->second.empty()) return std::nullopt;
  std::vector<DurationMs> took = found->second;
  const auto middle = took.begin() + static_cast<std::ptrdiff_t>(took.size() / 2);
  std::nth_element(took.begin(), middle, took.end());
  return *middle;
}

using Stage = NodeRun::Stage;

Standing standing_of(const NodeRun& node) {
  Standing now;
  now.over = node.over();
  now.works = node.stage == Stage::done;
  now.returning = node.returning;
  now.by_hand = node.control.by == Switch::person && node.stage == Stage::powering;
  now.failed = node.stage == Stage::quarantined || (node.returning && !node.given_back);
  now.pending = node.stage == Stage::pending;
  now.heeded = node.attempt.offered || node.attempt.weighing;
  return now;
}

void Tally::move(const Standing& before, const Standing& now) {
  const auto good_one = [](const Standing& s) { return s.works && !s.returning; };
  failed += int{now.failed} - int{before.failed};
  over += size_t{now.over} - size_t{before.over};
  works += size_t{now.works} - size_t{before.works};
  good += size_t{good_one(now)} - size_t{good_one(before)};
}

}  // namespace muster
