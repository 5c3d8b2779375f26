#include "controller/rollout/rollout_row.h"

#include <algorithm>
#include <utility>

#include "controller/rollout/next.h"

namespace muster::rollout {
namespace {

bool is_failure(Outcome outcome) { return outcome == Outcome::returned || outcome == Outcome::quarantined; }

void postpone(Row& row, const std::string& node, const RunEnd& end, const NodeEnd& of_node) {
  Postponed& p = row.postponed[node];
  p = {of_node.reason, end.run, end.night, p.times + 1, of_node.outcome == Outcome::unfinished, false};
}

void judge(Row& row, const std::string& node, const RunEnd& end, const NodeEnd& of_node) {
  const Underway& batch = *row.batch;
  if (of_node.outcome == Outcome::accepted) {
    row.done[node] = end.run;
    if (batch.canary) ++row.proven[batch.images.at(node)];
  } else if (is_failure(of_node.outcome)) {
    row.failed[node] = {of_node.reason, end.run, batch.canary, of_node.outcome == Outcome::returned};
    const std::string& image = batch.images.at(node);
    if (batch.canary) row.held[image] = {node, of_node.reason, image, end.run};
  } else if (of_node.outcome != Outcome::held && of_node.outcome != Outcome::not_begun) {
    postpone(row, node, end, of_node);
  }
}

}  // namespace

Row begun(int64_t id, const std::string& target) {
  Row row;
  row.id = id;
  row.target = target;
  return row;
}

int failures_of(const Row& row) {
  return static_cast<int>(std::count_if(row.failed.begin(), row.failed.end(),
                                        [](const auto& failed) { return !failed.second.canary; }));
}

Result<Row> started_again(Row row, const std::string& target) {
  const bool of_images = row.stop == StopReason::canary_failed || row.stop == StopReason::no_canary;
  if (row.stage == Stage::stopped && !of_images) return fail(Code::conflict, "the rollout was stopped");
  if (row.target != target) return fail(Code::conflict, "the rollout has a different target");
  if (row.stage == Stage::done || row.stage == Stage::stopped) row.stage = Stage::batches;
  row.stop = StopReason::none;
  return row;
}

Row with_batch(Row row, const View& view, const Answer& answer) {
  Underway batch;
  batch.number = ++row.batches;
  batch.canary = answer.batch.canary;
  for (const size_t at : answer.batch.nodes) batch.images[view.nodes[at].name] = view.nodes[at].image_wanted;
  row.batch = std::move(batch);
  return row;
}

Result<Row> with_run(Row row, int64_t run) {
  if (!row.batch) return fail(Code::conflict, "no batch is under way");
  if (row.batch->run != 0 && row.batch->run != run)
    return fail(Code::conflict, "the batch belongs to a different run");
  row.batch->run = run;
  return row;
}

Result<Row> without_batch(Row row) {
  if (!row.batch) return fail(Code::conflict, "no batch is under way");
  if (row.batch->run != 0) return fail(Code::conflict, "the batch already has a run");
  row.batch.reset();
  return row;
}

Row refused_in(Row row, const std::map<std::string, std::string>& reasons, int64_t night) {
  for (const auto& [node, reason] : reasons) {
    Postponed& p = row.postponed[node];
    p = {reason, 0, night, p.times + 1, false, true};
  }
  return row;
}

Result<Row> judged(Row row, const RunEnd& end) {
  if (!row.batch || row.batch->run == 0) return fail(Code::conflict, "no batch is under way");
  if (row.batch->run != end.run) return fail(Code::conflict, "the batch belongs to a different run");
  static const NodeEnd kUnknown{Outcome::quarantined, "the batch's run has no result for this node"};
  for (const auto& [node, image] : row.batch->images) {
    const auto found = end.nodes.find(node);
    judge(row, node, end, found == end.nodes.end() ? kUnknown : found->second);
  }
  row.batch.reset();
  row.paused = row.paused || end.cancelled;
  return row;
}

Row with_answer(Row row, const Answer& answer) {
  if (answer.what == Do::stop) row.stage = Stage::stopped, row.stop = answer.stop;
  if (answer.what == Do::done) row.stage = Stage::done;
  if (answer.what == Do::run) row.stage = answer.batch.canary ? Stage::canary : Stage::batches;
  return row;
}

}  // namespace muster::rollout
