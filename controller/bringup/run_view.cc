#include "controller/bringup/run_view.h"

#include <algorithm>

#include "controller/nodes/states.h"
#include "controller/run/step_log.h"

namespace muster {
namespace {

Result<StepLog> replay(const std::vector<JournalRow>& journal) {
  StepLog log;
  for (const auto& row : journal) TRY_(log.apply(row));
  return log;
}

bool over(ActionState state) {
  return state == ActionState::succeeded || state == ActionState::failed || state == ActionState::abandoned;
}

std::string text_in(const Json& data, const char* key) {
  const auto it = data.is_object() ? data.find(key) : data.end();
  return it != data.end() && it->is_string() ? it->get<std::string>() : "";
}

std::string result_of(const Plan& plan, const StepLog& log, const std::string& node,
                      const std::string& quarantined, const std::optional<WentBack>& back) {
  if (!quarantined.empty()) return std::string(to_string(NodeState::quarantined));
  if (back) return back->there ? "returned" : "returning";
  bool all = true, failed = false;
  for (const auto& action : plan.actions) {
    if (action.node != node || action.when_failed) continue;
    const auto state = log.of(action.id).state;
    all = all && state == ActionState::succeeded;
    failed = failed || state == ActionState::failed || state == ActionState::abandoned;
  }
  if (failed) return "failed";
  if (!all) return "unfinished";
  if (plan.kind == PlanKind::wake) return "awake";
  return std::string(to_string(plan.kind == PlanKind::discover ? NodeState::discovered
                               : plan.kind == PlanKind::drain  ? NodeState::drained
                                                               : NodeState::accepted));
}

Json action_json(const Action& action, const ActionRecord& record) {
  const DurationMs ms = record.ended > 0 ? record.ended - record.first_intent : 0;
  return {{"id", action.id},
          {"node", action.node},
          {"kind", to_string(action.kind)},
          {"phase", action.phase},
          {"title", action.title},
          {"state", to_string(record.state)},
          {"attempt", record.attempt},
          {"ms", ms},
          {"message", text_in(record.result, "message")}};
}

}  // namespace

Json run_row_json(const RunRow& row) {
  return {{"id", row.id},
          {"state", to_string(row.state)},
          {"plan_digest", row.plan_digest},
          {"started", row.started},
          {"ended", row.ended},
          {"approved_by", row.approved_by}};
}

Result<Plan> plan_of_run(Store& store, const RunRow& row) {
  TRY(const auto stored, store.plan(row.plan_digest));
  TRY(const auto json, parse_json(stored.json));
  return plan_from_json(json);
}

std::vector<PhaseTime> phase_times(const Plan& plan, const std::vector<JournalRow>& journal,
                                   const std::string& node) {
  std::vector<PhaseTime> phases;
  const auto log = replay(journal);
  if (!log.ok()) return phases;
  for (const auto& action : plan.actions) {
    const ActionRecord& record = log->of(action.id);
    if (action.node != node || record.state == ActionState::fresh) continue;
    auto phase = std::find_if(phases.begin(), phases.end(),
                              [&](const PhaseTime& p) { return p.phase == action.phase; });
    if (phase == phases.end())
      phase = phases.insert(phases.end(), {action.phase, record.first_intent, 0, "done"});
    phase->end = std::max(phase->end, record.ended);
    if (!over(record.state))
      phase->outcome = "running";
    else if (record.state != ActionState::succeeded)
      phase->outcome = "failed";
  }
  return phases;
}

std::string quarantine_reason(const std::vector<JournalRow>& journal, const std::string& node) {
  std::string reason;
  for (const auto& row : journal)
    if (row.node == node && row.event == "quarantined") reason = text_in(row.data, "reason");
  return reason;
}

std::string stood_down(const std::vector<JournalRow>& journal, const std::string& node) {
  std::string reason;
  for (const auto& row : journal)
    if (row.node == node && row.event == "not_started") reason = text_in(row.data, "reason");
  return reason;
}

std::optional<WentBack> went_back(const std::vector<JournalRow>& journal, const std::string& node) {
  std::optional<WentBack> back;
  for (const auto& row : journal)
    if (row.node == node && (row.event == "returning" || row.event == "returned"))
      back = {text_in(row.data, "reason"), row.event == "returned"};
    else if (row.node == node && row.event == "not_started")  // cancelled on its way
      back.reset();
  return back;
}

Result<Json> run_view(Store& store, int64_t run) {
  TRY(const auto row, store.run(run));
  TRY(const auto plan, plan_of_run(store, row));
  TRY(const auto journal, store.journal(row.id));
  TRY(const auto log, replay(journal));
  Json view = run_row_json(row);
  view["kind"] = to_string(plan.kind);
  view["simulated"] = plan.simulated;
  view["nodes"] = Json::array();
  view["actions"] = Json::array();
  for (const auto& name : plan.nodes) {
    const std::string quarantined = quarantine_reason(journal, name);
    const auto back = went_back(journal, name);
    Json phases = Json::array();
    TimeMs first = 0, last = 0;
    for (const auto& p : phase_times(plan, journal, name)) {
      phases.push_back({{"phase", p.phase}, {"ms", p.end > 0 ? p.end - p.start : 0}, {"outcome", p.outcome}});
      first = first == 0 ? p.start : std::min(first, p.start);
      last = std::max(last, p.end);
    }
    view["nodes"].push_back({{"name", name},
                             {"result", result_of(plan, log, name, quarantined, back)},
                             {"reason", !quarantined.empty() ? quarantined
                                        : back               ? back->reason
                                                             : stood_down(journal, name)},
                             {"ms", last > first ? last - first : 0},
                             {"phases", phases}});
  }
  // What was in reserve and not needed is nobody's business.
  for (const auto& action : plan.actions)
    if (const ActionRecord& record = log.of(action.id);
        !action.when_failed || record.state != ActionState::fresh)
      view["actions"].push_back(action_json(action, record));
  return view;
}

}  // namespace muster
