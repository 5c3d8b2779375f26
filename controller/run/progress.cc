#include "controller/run/progress.h"

#include <algorithm>

namespace muster {

namespace {

const char* shown(const NodeRun& node) {
  using Stage = NodeRun::Stage;
  switch (node.stage) {
    case Stage::done:
      return node.returned() ? "returned" : "done";
    case Stage::quarantined:
      return "quarantined";
    case Stage::not_started:
      return "not_started";
    case Stage::pending:
      return "waiting";
    case Stage::committing:
    case Stage::powering:
    case Stage::looking:
    case Stage::awaiting:
    case Stage::pausing:
      return "running";
  }
  return "running";
}

}  // namespace

Json node_progress(const NodeRun& node, DurationMs ahead) {
  Json out = {{"node", node.name},
              {"state", shown(node)},
              {"reason", node.reason},
              {"index", node.index},
              {"of", node.way().size()}};
  if (node.returning && !node.over()) out["returning"] = true;
  if (node.acts()) {
    const Action& action = node.action();
    out["action"] = action.id;
    out["phase"] = action.phase;
    out["title"] = action.title;
    out["attempt"] = node.attempt;
    out["since"] = node.started.ms + ahead;
  }
  if (node.total > 0) out["percent"] = std::min(100.0, 100.0 * node.done / node.total);
  if (!node.unit.empty()) out["unit"] = node.unit;
  if (!node.text.empty()) out["text"] = node.text;
  if (node.last_at > node.first_at && node.done > node.first_done) {
    const double rate =
        (node.done - node.first_done) * 1000.0 / static_cast<double>(node.last_at - node.first_at);
    out["rate"] = rate;
    if (node.total > node.done)
      out["eta_ms"] = static_cast<int64_t>((node.total - node.done) / rate * 1000.0);
  }
  if (node.person && node.stage == NodeRun::Stage::powering) out["by_hand"] = true;
  if (!node.wait.reason.empty()) out["wait"] = to_json(node.wait, ahead);
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

}  // namespace muster
