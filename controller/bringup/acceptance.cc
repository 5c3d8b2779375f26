#include "controller/bringup/acceptance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/facts.h"
#include "base/log.h"
#include "base/version.h"
#include "controller/plan/disk_selection.h"
#include "controller/report/link_blame.h"
#include "controller/report/collective.h"
#include "controller/report/floors.h"
#include "controller/report/gpu_checks.h"
#include "controller/report/signature.h"
#include "controller/report/stand_ins.h"
#include "controller/report/verdict.h"
#include "controller/run/answers.h"
#include "controller/run/executor.h"
#include "controller/bringup/inventories.h"
#include "controller/bringup/run_records.h"
#include "controller/bringup/run_view.h"
#include "controller/bringup/unplanned_gpus.h"
#include "controller/spec/drive_models.h"

namespace muster {
namespace {

// A discovery that ended this shortly before an installation began belongs to the same bring-up.
constexpr DurationMs kSameBringup = 30 * kMinute;
constexpr size_t kHistoryRuns = 20;
// The module whose step is one test of many nodes, and how long each of the tests in pairs that may follow
// takes at most, where its profile does not say otherwise (pair_deadline_seconds).
constexpr const char* kCollective = "accept_mpi";
constexpr double kPairSeconds = 2;
constexpr int kPairDeadlineSeconds = 60;

std::string text_of(const Json& object, const char* key) {
  const auto it = object.is_object() ? object.find(key) : object.end();
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}
int64_t whole_number_of(const Json& object, const char* key) {
  const auto it = object.is_object() ? object.find(key) : object.end();
  return it != object.end() && it->is_number_integer() ? it->get<int64_t>() : 0;
}
const Json& list_of(const Json& object, const char* key) {
  static const Json kNone = Json::array();
  const auto it = object.is_object() ? object.find(key) : object.end();
  return it != object.end() && it->is_array() ? *it : kNone;
}

struct StepName {
  std::string group, subject;
};
// "acceptance/link[node02]" -> {"link", "node02"}
StepName split_step(const std::string& id) {
  const auto bracket = id.find('[');
  std::string group = id.substr(0, bracket);
  if (const auto slash = group.rfind('/'); slash != std::string::npos) group = group.substr(slash + 1);
  const bool item = bracket != std::string::npos && id.back() == ']';
  return {group, item ? id.substr(bracket + 1, id.size() - bracket - 2) : ""};
}

// Whose test this step is, when it is one of several nodes together: what the agent says it ran on, as far as
// the plan names it.
std::vector<std::string> members_of(const wire::Step& step, const Json& result) {
  if (step.module != kCollective) return {};
  std::set<std::string> ran;
  for (const Json& name : list_of(result, "members"))
    if (name.is_string()) ran.insert(name.get<std::string>());
  std::vector<std::string> out;
  for (const Json& host : list_of(step.params, "hosts"))
    if (const std::string name = text_of(host, "name"); !name.empty() && (ran.empty() || ran.count(name)))
      out.push_back(name);
  return out;
}

// The steps of one check action, with what was told of each; a step without an answer was not run.
std::vector<MeasuredStep> measured_steps(const Action& action, const Json& told) {
  std::map<std::string, const Json*> answers;
  for (const Json& step : told) answers[text_of(step, "step")] = &step;
  std::vector<MeasuredStep> steps;
  for (const Json& json : action.params["steps"]) {
    const auto step = wire::step_from_json(json);
    if (!step.ok()) continue;
    MeasuredStep m;
    const StepName name = split_step(step->id);
    m.id = step->id;
    m.node = action.node;
    m.group = name.group;
    m.title = name.group;
    m.subject = name.subject;
    m.mandatory = step->mandatory;
    m.expect = step->expect;
    for (const auto& aspect : list_of(m.expect, "blocks"))
      if (aspect.is_string()) m.blocks.push_back(aspect.get<std::string>());
    if (m.expect.is_object()) m.expect.erase("blocks");
    m.status = "incomplete";
    m.message = "not run";
    m.members = members_of(*step, nullptr);
    if (const auto answer = answers.find(step->id); answer != answers.end()) {
      m.status = text_of(*answer->second, "status");
      m.message = text_of(*answer->second, "message");
      m.result = answer->second->value("result", Json());
      m.members = members_of(*step, m.result);
      m.rounds = answer->second->value("rounds", Json());
    }
    steps.push_back(std::move(m));
  }
  return steps;
}

// `spec` null: there is none to be read.
GpuHosts gpu_hosts(const Plan& plan, Inventories& inventories, const Spec* spec) {
  const auto adopted = [spec](const std::string& name) {
    const NodeSpec* node = spec ? spec->node(name) : nullptr;
    return node && node->adopt.declared();
  };
  return {plan.simulated, [&inventories](const std::string& node) { return inventories.of(node); }, adopted};
}

// Of the action of the run that goes on.
std::vector<MeasuredStep> told_steps(CurrentSpec& spec, const Executor& executor, const Action& action,
                                     const Json& result) {
  auto steps = measured_steps(action, list_of(result, "steps"));
  Inventories inventories(executor);
  const auto current = spec.get();
  mark_gpu_steps(action.params.value("steps", Json::array()),
                 gpu_hosts(executor.plan(), inventories, current.ok() ? &(*current)->spec : nullptr), steps);
  return steps;
}

// Everything make_report() reads, gathered once.
struct Sources {
  const RunRow& run;
  const Plan& plan;
  RunRecords records;
  StepAnswers answers;
  Spec spec;
  std::string spec_digest;
};

Result<Sources> gather(Store& store, const RunRow& run, const Plan& plan) {
  Sources s{run, plan, {}, {}, {}, {}};
  TRY(const auto journal, store.journal(run.id));
  TRY(s.records, RunRecords::of(plan, journal));
  for (const auto& row : journal) s.answers.apply(row);
  TRY(const auto text, store.spec(plan.spec_revision));
  s.spec = parse_spec(text.text).spec;
  s.spec_digest = text.digest;
  return s;
}

// The spec's group that selects this disk; "" when none does.
std::string group_of(const NodeSpec* declared, const DiskFacts& disk) {
  if (declared)
    for (const auto& [name, group] : declared->disks)
      if (disk_matches(group.match, disk)) return name;
  return "";
}

void add_hardware(NodeReport& node, const NodeSpec* declared, const NodeRow& row) {
  node.image_digest = row.image_digest;
  node.config_digest = row.config_digest;
  const auto facts = row.facts.facts();
  if (declared) node.checks = judge_hardware(*declared, facts ? &*facts : nullptr);
  if (!facts) return;
  node.vendor = facts->system.vendor;
  node.product = facts->system.product;
  node.serial = facts->system.serial;
  node.uuid = facts->system.uuid;
  node.kernel = facts->kernel;
  node.firmware = facts->firmware;
  for (const auto& disk : facts->disks)
    node.disks.push_back({group_of(declared, disk), disk.serial, disk.wwid, disk.model, disk.size_bytes});
  for (const auto& nic : facts->nics)
    if (!nic.driver.empty()) node.drivers["nic " + nic.mac] = nic.driver;
  node.facts = to_json(*facts);
}

void add_steps(NodeReport& node, const Sources& s, const Action& action) {
  for (const Json& step : s.answers.of(action.id))
    node.steps.push_back({text_of(step, "step"), action.phase, text_of(step, "status"),
                          text_of(step, "message"), whole_number_of(step, "ms")});
}

void add_phases(NodeReport& node, const RunRecords& records) {
  for (const auto& p : records.phases(node.name))
    node.phases.push_back({p.phase, p.start, p.end > p.start ? p.end - p.start : 0, p.outcome});
}

NodeVerdict verdict_of(const Sources& s, const std::string& node, bool quarantined, bool returned) {
  if (quarantined) return NodeVerdict::quarantined;
  if (returned) return NodeVerdict::returned;
  for (const Action* action : s.records.node(node).actions)
    if (!action->when_failed && s.records.record(action->id).state != ActionState::succeeded)
      return NodeVerdict::failed;
  return NodeVerdict::accepted;
}

// What happened to a node before, in the discovery of the same bring-up.
void add_discovery(Report& report, Store& store, const Sources& s) {
  if (s.run.id < 2 || s.plan.kind == PlanKind::discover) return;
  const auto before = store.run(s.run.id - 1);
  if (!before.ok() || s.run.started - before->ended > kSameBringup) return;
  const auto plan = plan_of_run(store, *before);
  const auto journal = store.journal(before->id);
  if (!plan.ok() || !journal.ok() || plan->kind != PlanKind::discover) return;
  report.plan_digests.insert(report.plan_digests.begin(), before->plan_digest);
  report.started = before->started;
  const auto records = RunRecords::of(*plan, *journal);
  if (!records.ok()) return;
  for (auto& node : report.nodes) {
    NodeReport earlier;
    earlier.name = node.name;
    add_phases(earlier, *records);
    node.phases.insert(node.phases.begin(), earlier.phases.begin(), earlier.phases.end());
  }
}

NodeReport node_report(const Sources& s, const Executor& executor, const std::string& name) {
  NodeReport node;
  node.name = name;
  const NodeSpec* declared = s.spec.node(name);
  if (declared) {
    node.role = declared->role;
    node.address = declared->address;
    node.image = declared->image;
  }
  const RunRecords::Node& records = s.records.node(name);
  node.reason = records.reason;
  const bool quarantined = !node.reason.empty();
  const auto& back = records.back;
  if (!quarantined) node.reason = back ? back->reason : records.stood_down;
  node.verdict = verdict_of(s, name, quarantined, back && back->there);
  add_hardware(node, declared, executor.node_row(name));
  for (const Action* action : records.actions)
    if (action->kind == ActionKind::steps) add_steps(node, s, *action);
  add_phases(node, s.records);
  return node;
}

History history_before(Store& store, int64_t run) {
  History history;
  const auto rows = store.reports(run, kHistoryRuns);
  if (!rows.ok()) return history;
  for (const auto& row : *rows)
    if (const auto added = add_history(history, row.run, row.measured); !added.ok())
      log::warning("history left out", {{"run", std::to_string(row.run)}, {"error", added.error().message}});
  return history;
}

// Measurements of the whole run, judged with everything they can be compared with.
void add_measurements(Report& report, Store& store, const Executor& executor, const Sources& s) {
  std::vector<MeasuredStep> steps;
  Inventories inventories(executor);
  const GpuHosts hosts = gpu_hosts(s.plan, inventories, &s.spec);
  for (const auto& action : s.plan.actions)
    if (action.kind == ActionKind::check) {
      auto told = measured_steps(action, s.answers.of(action.id));
      mark_gpu_steps(action.params.value("steps", Json::array()), hosts, told);
      for (auto& step : told) {
        step.own_affair =
            !step.members.empty() && s.records.record(action.id).state != ActionState::succeeded;
        steps.push_back(std::move(step));
      }
    }
  if (steps.empty()) return;
  const History history = history_before(store, s.run.id);
  Comparison with;
  with.history = &history;
  with.drives = drive_models_of(s.spec);
  for (const auto& node : report.nodes)
    if (const auto* facts = inventories.of(node.name)) with.facts[node.name] = facts;
  auto judged = judge_measurements(steps, with);
  for (auto& question : question_floors(judged, s.plan.profile, history))
    report.notes.push_back(std::move(question));
  std::map<std::string, std::string> by_address;
  for (const auto& node : s.spec.nodes) by_address[node.address] = node.name;
  report.links = link_matrix(steps, s.plan.nodes, by_address);
  blame_links(
      judged, steps,
      [&](const std::string& name) {
        const NodeSpec* node = s.spec.node(name);
        return node ? "NIC " + node->mac : "";
      },
      with.facts);
  for (auto& node : report.nodes) {
    for (auto& check : judged[node.name]) node.checks.push_back(std::move(check));
    if (auto missing = unplanned_gpus(s.plan, node.name, inventories.of(node.name)))
      node.checks.push_back(std::move(*missing));
    carry_over(node, history);
    if (const auto* facts = inventories.of(node.name)) say_simulated(*facts, node.checks);
  }
}

Result<Report> make_report(Store& store, const Executor& executor, const RunRow& run) {
  Plan stored;  // of the executor's own run it is at hand
  if (executor.run_id() != run.id) {
    TRY(stored, plan_of_run(store, run));
  }
  TRY(const auto s, gather(store, run, executor.run_id() == run.id ? executor.plan() : stored));
  Report report;
  report.cluster = s.plan.cluster;
  report.simulated = s.plan.simulated;
  report.kind = to_string(s.plan.kind);
  report.run = s.run.id;
  report.spec_revision = s.plan.spec_revision;
  report.spec_digest = s.spec_digest;
  report.plan_digests = {s.run.plan_digest};
  report.images = s.plan.images;
  report.approved_by = s.run.approved_by;
  report.profile = s.plan.profile;
  report.version = kProgramVersion;
  report.started = s.run.started;
  report.ended = s.run.ended;
  report.notes = s.plan.notes;
  for (const auto& name : s.plan.nodes)
    if (!s.plan.only_serves(name) || !s.records.node(name).reason.empty())
      report.nodes.push_back(node_report(s, executor, name));
  add_measurements(report, store, executor, s);
  for (const auto& d : s.plan.destroys)
    report.destroyed.push_back({d.node, d.group, d.serial, d.wwid, d.model, d.size_bytes, d.content, d.why});
  add_discovery(report, store, s);
  settle(report);
  return report;
}

std::vector<Check> own_checks(CurrentSpec& spec, const Executor& executor, const Action& action,
                              const Json& result) {
  Comparison own;
  own.own_only = true;
  if (const auto current = spec.get(); current.ok()) own.drives = drive_models_of((*current)->spec);
  const auto facts = executor.node_row(action.node).facts.facts();
  if (facts) own.facts[action.node] = &*facts;
  auto checks = std::move(judge_measurements(told_steps(spec, executor, action, result), own)[action.node]);
  if (facts) say_simulated(*facts, checks);
  return checks;
}

// What the action's node alone is held to: everything but tests of several nodes, which only have to have
// been started (over other nodes' GPUs not even that), and floors, which are asked about when all nodes miss
// them.
Status judge_own(CurrentSpec& spec, const Executor& executor, const Action& action, const Json& result) {
  for (const auto& step : told_steps(spec, executor, action, result))
    if (step.mandatory && !step.members.empty() && step.result.is_null() && !only_starts(step))
      return fail(Code::failed, fmt::format("{}: {}", step.group, step.message));
  const auto facts = executor.node_row(action.node).facts.facts();
  std::vector<Check> checks = own_checks(spec, executor, action, result);
  if (const auto current = spec.get(); current.ok())
    if (const NodeSpec* node = (*current)->spec.node(action.node))
      for (auto& check : judge_hardware(*node, facts ? &*facts : nullptr)) checks.push_back(std::move(check));
  for (const auto& check : checks) {
    const bool blocks =
        check.mandatory && (check.verdict == Verdict::fail || check.verdict == Verdict::skipped);
    if (blocks && !check.missed_floor) return fail(Code::failed, reason_of(check));
  }
  if (const auto missing = unplanned_gpus(executor.plan(), action.node, facts ? &*facts : nullptr))
    return fail(Code::failed, reason_of(*missing));
  return Ok{};
}

// What this result has for a step; null: nothing.
Json answer_of(const Json& result, const std::string& id) {
  for (const Json& step : list_of(result, "steps"))
    if (text_of(step, "step") == id) return step.value("result", Json());
  return nullptr;
}

// An order of the same action with one step, the same test over each of these pairs.
Json order_of_pairs(const Action& action, const std::string& id,
                    const std::vector<std::pair<std::string, std::string>>& pairs) {
  Json order = action.params.json();
  order["steps"] = Json::array();
  for (Json step : action.params["steps"]) {
    if (text_of(step, "id") != id) continue;
    Json& params = step["params"];
    params["pairs"] = Json::array();
    for (const auto& [a, b] : pairs) params["pairs"].push_back({a, b});
    const std::string seconds = text_of(params, "seconds");
    params["seconds"] = fmt::format(
        "{:g}",
        std::min(kPairSeconds, seconds.empty() ? kPairSeconds : std::strtod(seconds.c_str(), nullptr)));
    const int64_t deadline = whole_number_of(params, "pair_deadline_seconds");
    params["deadline_seconds"] = deadline > 0 ? deadline : kPairDeadlineSeconds;
    order["steps"].push_back(std::move(step));
  }
  return order;
}

Json with_rounds(Json result, const std::string& id, const Json& rounds) {
  for (Json& step : result["steps"])
    if (text_of(step, "step") == id) step["rounds"] = rounds;
  return result;
}

bool accepts(const std::string& kind) {
  for (const PlanKind other : {PlanKind::discover, PlanKind::wake, PlanKind::none})
    if (kind == to_string(other)) return false;
  return true;
}

}  // namespace

Status judge(CurrentSpec& spec, const Executor& executor, const Action& action, const Json& result) {
  TRY_(judge_own(spec, executor, action, result));
  for (const auto& step : told_steps(spec, executor, action, result)) {
    const std::string outcome = text_of(step.result, "outcome");
    if (step.mandatory && !step.members.empty() && outcome != "measured" && !only_starts(step))
      return fail(Code::failed, fmt::format("{}: {}", step.group, text_of(step.result, "error")));
  }
  return Ok{};
}

std::string reservation(CurrentSpec& spec, const Executor& executor, const Action& action,
                        const Json& result) {
  for (const auto& check : own_checks(spec, executor, action, result))
    if (check.missed_floor) return reason_of(check);
  return "";
}

std::optional<FollowUp> follow_up(CurrentSpec& spec, const Executor& executor, const Action& action,
                                  const std::vector<Json>& results) {
  if (results.empty() || !judge_own(spec, executor, action, results.front()).ok()) return std::nullopt;
  // One test after the other, so each result is the next round of the first test that wants one.
  bool followed = false;
  size_t next = 1;
  const auto found = executor.node_row(action.node).facts.facts();
  FactsByNode facts;
  if (found) facts[action.node] = &*found;
  Json settled = results.front();
  for (auto& step : told_steps(spec, executor, action, results.front())) {
    if (step.members.empty() || step.result.is_null() || could_not_run(step) ||
        collective_passed(step, facts))
      continue;
    step.rounds = Json::array();
    for (auto pairs = next_pairs(step, facts); !pairs.empty(); pairs = next_pairs(step, facts)) {
      if (next == results.size()) return FollowUp{order_of_pairs(action, step.id, pairs), nullptr};
      step.rounds.push_back(list_of(answer_of(results[next++], step.id), "parts"));
    }
    settled = with_rounds(std::move(settled), step.id, step.rounds);
    followed = true;
  }
  return followed ? std::optional(FollowUp{nullptr, std::move(settled)}) : std::nullopt;
}

Conclusion conclude(Store& store, const Executor& executor, const pki::KeyPair& key, const RunRow& run) {
  Conclusion out;
  auto report = make_report(store, executor, run);
  if (!report.ok()) {
    log::error("no report of this run", {{"run", std::to_string(run.id)}, {"error", report.error().message}});
    return out;
  }
  if (!accepts(report->kind)) return out;
  for (auto& node : report->nodes) {
    if (node.verdict == NodeVerdict::degraded) out.nodes.push_back({node.name, false, node.reason});
    // Without a profile nothing is promised; with one, a node that did not prove what it should is not handed
    // over. A node that failed without a reason never came so far.
    if (node.verdict != NodeVerdict::failed || node.reason.empty() || report->profile.empty()) continue;
    out.nodes.push_back({node.name, true, node.reason});
    node.verdict = NodeVerdict::quarantined;
  }
  const std::string body = to_json_text(*report);
  const auto public_key = key_line(key.certificate_pem);
  const auto signature = pki::sign(key.key_pem, body);
  if (!public_key.ok() || !signature.ok()) {
    log::error("the report is not signed",
               {{"error", (signature.ok() ? public_key.error() : signature.error()).message}});
    return out;
  }
  out.rows.push_back(
      ReportRow{run.id, run.ended, sign_block(body, *public_key, *signature), measured_text(*report)});
  return out;
}

Result<std::string> signed_report(Store& store, int64_t run) {
  TRY(const auto row, store.run(run));
  TRY(auto stored, store.report(row.id));
  return std::move(stored.json);
}

Result<Report> report_of(Store& store, const Executor& executor, int64_t run) {
  TRY(const auto row, store.run(run));
  const auto text = signed_report(store, row.id);
  if (!text.ok()) return make_report(store, executor, row);
  TRY(const auto parts, split_signature(*text));
  TRY(const auto json, parse_json(parts.body));
  TRY(auto report, report_from_json(json));
  report.digest = parts.digest;
  report.signed_by = key_fingerprint(parts.public_key);
  return report;
}

}  // namespace muster
