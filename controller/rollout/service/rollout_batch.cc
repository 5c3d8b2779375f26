// RolloutService: a batch, from the decision to begin it to the result of its run.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "controller/rollout/service/rollout_service.h"
#include "sys/log.h"

namespace muster {

using namespace rollout;

namespace {

std::vector<std::string> names_of(const View& view, const std::vector<size_t>& nodes) {
  std::vector<std::string> out;
  for (const size_t at : nodes) out.push_back(view.nodes[at].name);
  return out;
}

}  // namespace

void RolloutService::order(const SeenCluster& seen, const Answer& answer) {
  const BatchOrder batch{names_of(seen.view, answer.batch.nodes), names_of(seen.view, answer.batch.prefetch),
                         answer.batch.failure_budget};
  port_.plan(batch, alive_.wrap([this, seen, answer](Result<PlannedBatch> made) {
    planned(seen, answer, std::move(made));
  }));
}

void RolloutService::planned(const SeenCluster& seen, const Answer& answer, Result<PlannedBatch> made) {
  if (!waiting_.empty()) return go_on();  // a request, such as a pause, comes before the run
  const bool again =
      !made.ok() && (made.error().code == Code::unavailable || made.error().code == Code::conflict ||
                     made.error().code == Code::timeout);
  if (again) return later(made.error().message);
  if (!made.ok())
    return leave_out(seen.view, answer.batch.nodes, "cannot be planned: " + made.error().message);
  BatchNodes nodes;
  for (const auto& name : names_of(seen.view, answer.batch.nodes)) nodes.nodes.insert(name);
  for (const auto& name : names_of(seen.view, answer.batch.prefetch)) nodes.prefetch.insert(name);
  const auto refusals = made->refusals.empty() ? beyond(seen.now, *made->plan, nodes) : made->refusals;
  if (!refusals.empty()) return refused(seen, answer, refusals);
  begin_run(seen, answer, made->digest);
}

// Only the nodes that the refusals are about are left out. Where that is unknown, because another node is
// named, such as a storage server, the batch's nodes are tried one by one.
void RolloutService::refused(const SeenCluster& seen, const Answer& answer,
                             const std::vector<Refusal>& refusals) {
  const View& view = seen.view;
  std::map<std::string, std::string> reasons;
  for (const Refusal& refusal : refusals)
    reasons.emplace(refusal.node, refusal.rule + ": " + refusal.message);
  const auto named = [&](size_t at) { return reasons.count(view.nodes[at].name) > 0; };
  const std::vector<size_t>& nodes = answer.batch.nodes;
  if (std::any_of(nodes.begin(), nodes.end(), named)) {
    std::erase_if(reasons, [&](const auto& one) {
      return std::none_of(nodes.begin(), nodes.end(),
                          [&](size_t at) { return view.nodes[at].name == one.first; });
    });
    return leave_out(view, std::move(reasons));
  }
  Answer smaller = answer;
  if (std::erase_if(smaller.batch.prefetch, named) == 0) {
    const Refusal& first = refusals.front();
    if (nodes.size() == 1)
      return leave_out(
          view, nodes,
          fmt::format("{}: {}{}{}", first.rule, first.node, first.node.empty() ? "" : ": ", first.message));
    smaller.batch.nodes = {nodes.front()};
    smaller.batch.prefetch.clear();
  }
  order(seen, smaller);
}

void RolloutService::leave_out(const View& view, const std::vector<size_t>& nodes, const std::string& why) {
  std::map<std::string, std::string> reasons;
  for (const size_t at : nodes) reasons[view.nodes[at].name] = why;
  leave_out(view, std::move(reasons));
}

// For this night.
void RolloutService::leave_out(const View& view, const std::map<std::string, std::string>& reasons) {
  log::warning("nodes are left out of the rollout's window", {{"nodes", std::to_string(reasons.size())},
                                                              {"node", reasons.begin()->first},
                                                              {"why", reasons.begin()->second}});
  save(refused_in(*record_, view, reasons, reactor_.now()), [this] { go_on(); });
}

void RolloutService::begin_run(const SeenCluster& seen, const Answer& answer, const std::string& digest) {
  Record next = with_batch(*record_, seen.view, answer);
  const int64_t number = next.row->batch->number;
  const std::string by = fmt::format("{}, approved by {}", run_tag(next.id, number), next.approval.by);
  save(std::move(next), [this, digest, by, number] {
    port_.start(digest, by,
                alive_.wrap([this, number](Result<int64_t> run) { started(number, std::move(run)); }));
  });
}

void RolloutService::started(int64_t number, Result<int64_t> run) {
  Record next = *record_;
  if (!run.ok()) {
    next.row = without_batch(std::move(*next.row)).value();
    log::warning("a batch did not begin", {{"batch", std::to_string(number)}, {"why", run.error().message}});
    return save(std::move(next), [this, why = run.error().message] { later(why); });
  }
  const Underway& batch = *next.row->batch;
  next.runs.push_back({batch.number, *run, batch.canary, batch.images});
  next.row = with_run(std::move(*next.row), *run).value();
  looked_ = {};
  save(std::move(next), [this] { go_on(); });  // a short run may already have ended
}

// Finishes a batch that was begun, possibly before this controller was started.
void RolloutService::finish_batch(const Underway& batch) {
  if (batch.run == 0) {
    const auto found = port_.tagged(run_tag(record_->id, batch.number));
    if (!found.ok()) return later(found.error().message);
    if (*found) return started(batch.number, **found);
    return started(batch.number,
                   fail(Code::failed, "the batch was not started before the controller stopped"));
  }
  const auto over = port_.ended(batch.run);
  if (!over.ok()) return later(over.error().message);
  if (!*over) return later("");  // the end of a held run (held_run.h) is not announced
  port_.read_end(batch.run, alive_.wrap([this](Result<RunEnd> end) { judge(std::move(end)); }));
}

void RolloutService::judge(Result<RunEnd> end) {
  if (!end.ok()) return later(end.error().message);
  const auto unwritten = end->unwritten;
  auto next = judged(*record_, std::move(end).value(), reactor_.now());
  if (!next.ok()) return later(next.error().message);
  for (const auto& [node, why] : unwritten) next->window.unwritten[node] = why;
  for (const auto& [node, run] : next->row->done) next->window.unwritten.erase(node);
  save(std::move(next).value(), [this] { go_on(); });
}

}  // namespace muster
