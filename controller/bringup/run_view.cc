#include "controller/bringup/run_view.h"

#include <algorithm>
#include <utility>

#include "base/json_at.h"
#include "controller/nodes/states.h"

namespace muster {
namespace {

std::string result_of(const Plan& plan, const RunRecords& records, const RunRecords::Node& node) {
  if (!node.reason.empty()) return std::string(to_string(NodeState::quarantined));
  if (node.back) return node.back->there ? "returned" : "returning";
  bool all = true, failed = false;
  for (const Action* action : node.actions) {
    if (action->when_failed) continue;
    const auto state = records.record(action->id).state;
    all = all && state == ActionState::succeeded;
    failed = failed || state == ActionState::failed || state == ActionState::abandoned;
  }
  if (failed) return "failed";
  if (!all) return "unfinished";
  if (plan.kind == PlanKind::wake) return "awake";
  return std::string(to_string(end_state(plan.kind)));
}

}  // namespace

bool is_shown(const Action& action, const RunRecords& records) {
  return !action.when_failed || records.record(action.id).state != ActionState::fresh;
}

Json run_action_json(const Action& action, const RunRecords& records) {
  const ActionRecord& record = records.record(action.id);
  const DurationMs ms = record.ended > 0 ? record.ended - began(record) : 0;
  // Members are assigned one by one: an initializer list of pairs would be copied, and there are many
  // entries.
  Json out = Json::object();
  out["id"] = action.id;
  out["node"] = action.node;
  out["kind"] = to_string(action.kind);
  out["phase"] = action.phase;
  out["title"] = action.title;
  out["state"] = to_string(record.state);
  out["attempt"] = record.attempt;
  out["ms"] = ms;
  out["message"] = text_at(record.result, "message");
  return out;
}

Json run_node_json(const Plan& plan, const RunRecords& records, const std::string& name) {
  const RunRecords::Node& node = records.node(name);
  Json phases = Json::array();
  TimeMs first = 0, last = 0;
  for (const auto& p : records.phases(name)) {
    Json& phase = phases.emplace_back(Json::object());
    phase["phase"] = p.phase;
    phase["ms"] = p.end > 0 ? p.end - p.start : 0;
    phase["outcome"] = p.outcome;
    first = first == 0 ? p.start : std::min(first, p.start);
    last = std::max(last, p.end);
  }
  Json out = Json::object();
  out["name"] = name;
  out["result"] = result_of(plan, records, node);
  out["reason"] = !node.reason.empty() ? node.reason : node.back ? node.back->reason : node.stood_down;
  out["ms"] = last > first ? last - first : 0;
  out["phases"] = std::move(phases);
  return out;
}

Json run_head_json(const RunRow& row, const Plan& plan) {
  Json head = run_row_json(row);
  head["kind"] = to_string(plan.kind);
  head["simulated"] = plan.simulated;
  return head;
}

Json run_row_json(const RunRow& row) {
  return {{"id", row.id},
          {"state", to_string(row.state)},
          {"plan_digest", row.plan_digest},
          {"started", row.started},
          {"ended", row.ended},
          {"approved_by", row.approved_by}};
}

Result<Plan> plan_of_run(RunArchive& archive, const RunRow& row) {
  TRY(const auto stored, archive.plan(row.plan_digest));
  TRY(const auto json, parse_json(stored.json));
  return plan_from_json(json);
}

Result<RunSources> read_run(RunArchive& archive, const RunRow& row, RunRows rows,
                            std::shared_ptr<const Plan> plan) {
  RunSources out{row, std::move(plan), {}};
  if (!out.plan) {
    TRY(auto read, plan_of_run(archive, row));
    out.plan = std::make_shared<const Plan>(std::move(read));
  }
  TRY(out.journal, rows == RunRows::all ? archive.journal(row.id) : archive.journal_turns(row.id, 0));
  return out;
}

Result<Json> run_view(RunArchive& archive, int64_t run) {
  TRY(const auto row, archive.run(run));
  TRY(const auto read, read_run(archive, row, RunRows::turns));
  return run_view(read);
}

Result<Json> run_view(const RunSources& run) {
  const Plan& plan = *run.plan;
  TRY(const auto records, RunRecords::of(plan, run.journal));
  Json view = run_head_json(run.row, plan);
  Json& nodes = view["nodes"] = Json::array();
  Json& actions = view["actions"] = Json::array();
  for (const auto& name : plan.nodes) nodes.push_back(run_node_json(plan, records, name));
  for (const auto& action : plan.actions)
    if (is_shown(action, records)) actions.push_back(run_action_json(action, records));
  return view;
}

}  // namespace muster
