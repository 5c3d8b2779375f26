#include "controller/bringup/acceptance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "base/json_at.h"
#include "base/standin.h"
#include "controller/report/collective.h"
#include "controller/report/measured.h"
#include "controller/spec/drive_models.h"
#include "controller/spec/playbook.h"

namespace muster {
namespace {

// The modules whose step is one test of many nodes.
constexpr const char* kCollectives[] = {"accept_mpi", "accept_group"};
// The module of nodes that take part in a test led by a different node, which records the result.
constexpr const char* kServes = "accept_group_serve";
// A list of all nodes in the params of a step, which no acceptance rule reads.
constexpr const char* kPeers = "peers";

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

// Those that the agent reports and the plan names.
std::vector<std::string> members_of(const wire::Step& step, const Json& result) {
  if (std::find(std::begin(kCollectives), std::end(kCollectives), step.module) == std::end(kCollectives))
    return {};
  std::set<std::string> ran;
  for (const Json& name : list_at(result, "members"))
    if (name.is_string()) ran.insert(name.get<std::string>());
  std::vector<std::string> out;
  for (const Json& host : list_at(step.params, "hosts"))
    if (const std::string name = text_at(host, "name"); !name.empty() && (ran.empty() || ran.count(name)))
      out.push_back(name);
  return out;
}

// Plans hold thousands of steps as text: only those that contain a word used by GPU checks are parsed
// (controller/report/gpu_checks.cc).
bool has_gpu_checks(const ActionParams& params) {
  if (params.steps().empty()) return checks_own_gpus(params.value("steps", Json()));
  return std::any_of(params.steps().begin(), params.steps().end(), [](const SharedText& step) {
    const std::string text = step.text();
    if (text.find("\"gpu-") == std::string::npos && text.find("\"counters\"") == std::string::npos)
      return false;
    const auto json = parse_json(text);
    return json.ok() && checks_own_gpus(Json::array({*json}));
  });
}

// Default time limit of each pair test that may follow a multi-node test; pair_deadline_seconds overrides it.
constexpr double kPairSeconds = 2;
constexpr int kPairDeadlineSeconds = 60;

struct OwnResult {
  std::shared_ptr<const SpecRevision> spec;    // null: none can be read
  std::shared_ptr<const HardwareFacts> facts;  // of the action's node; null: none are known
  std::vector<MeasuredStep> steps;
  std::vector<Check> checks;
};

OwnResult own_result(CurrentSpec& spec, KeptOfPlan& kept, const Executor& executor, const Action& action,
                     const Json& result) {
  OwnResult own;
  own.spec = spec.get().value_or(nullptr);
  own.facts = executor.node_row(action.node).facts.facts();
  Inventories inventories(
      [&executor](const std::string& node) { return executor.node_row(NodeName(node)).facts; });
  own.steps = measured_steps(
      action.node, kept.steps.of(executor.shared_plan(), action), list_at(result, "steps"),
      gpu_hosts(
          executor.plan().simulated, [&inventories](const std::string& node) { return inventories.of(node); },
          own.spec ? &own.spec->spec : nullptr));
  Comparison alone;
  alone.own_only = true;
  if (own.spec) alone.drives = drive_models_of(own.spec->spec);
  if (own.facts) alone.facts[action.node] = own.facts.get();
  own.checks = std::move(judge_measurements(own.steps, alone)[action.node]);
  if (own.facts) say_simulated(*own.facts, own.checks);
  return own;
}

// Judges everything except floors (an operator decides if all nodes miss one) and the results of tests of
// several nodes: such a test must have been started, unless it is one with other nodes' GPUs.
Status judge_own(const OwnResult& own, KeptOfPlan& kept, const Executor& executor, const std::string& name) {
  for (const auto& step : own.steps)
    if (step.mandatory && !step.members.empty() && step.result.is_null() && !only_starts(step) &&
        step.status != kNotLookedAt)
      return fail(Code::failed, fmt::format("{}: {}", step.group, step.message));
  std::vector<Check> checks = own.checks;
  if (const NodeSpec* node = own.spec ? own.spec->spec.node(name) : nullptr)
    for (auto& check : judge_hardware(*node, own.facts.get())) checks.push_back(std::move(check));
  for (const auto& check : checks) {
    const bool blocks =
        check.mandatory && (check.verdict == Verdict::fail || check.verdict == Verdict::skipped);
    if (blocks && !check.missed_floor) return fail(Code::failed, reason_of(check));
  }
  if (!has_real_gpus(own.facts.get())) return Ok{};
  if (const auto missing = unplanned_gpus(kept.gpus.of(executor.shared_plan()), name, own.facts.get()))
    return fail(Code::failed, reason_of(*missing));
  return Ok{};
}

// Null: none.
Json answer_of(const Json& result, const std::string& id) {
  for (const Json& step : list_at(result, "steps"))
    if (text_at(step, "step") == id) return step.value("result", Json());
  return nullptr;
}

Json order_of_pairs(const Action& action, const std::string& id,
                    const std::vector<std::pair<std::string, std::string>>& pairs) {
  Json order = action.params.json();
  order["steps"] = Json::array();
  for (Json step : action.params["steps"]) {
    if (text_at(step, "id") != id) continue;
    Json& params = step["params"];
    params["pairs"] = Json::array();
    for (const auto& [a, b] : pairs) params["pairs"].push_back({a, b});
    const std::string seconds = text_at(params, "seconds");
    params["seconds"] = fmt::format(
        "{:g}",
        std::min(kPairSeconds, seconds.empty() ? kPairSeconds : std::strtod(seconds.c_str(), nullptr)));
    const int64_t deadline = integer_at(params, "pair_deadline_seconds");
    params["deadline_seconds"] = deadline > 0 ? deadline : kPairDeadlineSeconds;
    order["steps"].push_back(std::move(step));
  }
  return order;
}

// Ends the servers on the group's nodes, which run until the leader has nothing more to measure.
Json order_of_goodbye(const Action& action, const std::string& id) {
  Json order = action.params.json();
  order["steps"] = Json::array();
  for (Json step : action.params["steps"]) {
    if (text_at(step, "id") != id) continue;
    step["params"]["bye"] = true;
    order["steps"].push_back(std::move(step));
  }
  return order;
}

// Null: the action led no group, or the step could not be run, so no node serves any more
// (agent/checks/accept_group.cc).
const wire::Step* led_group(const std::vector<wire::Step>& planned, const Json& result) {
  for (const auto& step : planned)
    if (const Json answer = step.module == kGroupModule ? answer_of(result, step.id) : Json();
        !answer.is_null())
      return text_at(answer, "outcome") == "unavailable" ? nullptr : &step;
  return nullptr;
}

Json with_rounds(Json result, const std::string& id, const Json& rounds) {
  for (Json& step : result["steps"])
    if (text_at(step, "step") == id) step["rounds"] = rounds;
  return result;
}

}  // namespace

std::vector<wire::Step> planned_steps(const Action& action) {
  std::vector<wire::Step> out;
  const auto add = [&out](const Json& json) {
    if (auto step = wire::step_from_json(json); step.ok()) out.push_back(std::move(step).value());
  };
  for (const auto& text : action.params.steps())
    add(parse_json_without(text.text(), "params", kPeers).value_or(Json()));
  if (action.params.steps().empty())
    for (const Json& json : action.params["steps"]) add(json);
  return out;
}

const std::vector<wire::Step>& StepsOfAction::of(const std::shared_ptr<const Plan>& plan,
                                                 const Action& action) {
  if (plan_ == plan && action_ == action.id) return steps_;
  steps_ = planned_steps(action);
  plan_ = plan;
  action_ = action.id;
  return steps_;
}

std::vector<MeasuredStep> measured_steps(const std::string& node, const std::vector<wire::Step>& planned,
                                         const Json& answered, const GpuHosts& hosts) {
  std::map<std::string, const Json*> answers;
  for (const Json& step : answered) answers[text_at(step, "step")] = &step;
  std::vector<MeasuredStep> steps;
  for (const auto& step : planned) {
    if (step.module == kServes) continue;
    MeasuredStep m;
    const StepName name = split_step(step.id);
    m.id = step.id;
    m.node = node;
    m.group = name.group;
    m.title = name.group;
    m.subject = name.subject;
    m.mandatory = step.mandatory;
    m.lab = hosts.lab;
    m.expect = step.expect;
    for (const auto& aspect : list_at(m.expect, "blocks"))
      if (aspect.is_string()) m.blocks.push_back(aspect.get<std::string>());
    if (m.expect.is_object()) m.expect.erase("blocks");
    m.status = "incomplete";
    m.message = "not run";
    m.members = members_of(step, nullptr);
    if (const auto answer = answers.find(step.id); answer != answers.end()) {
      m.status = text_at(*answer->second, "status");
      m.message = text_at(*answer->second, "message");
      m.result = answer->second->value("result", Json());
      m.members = members_of(step, m.result);
      m.rounds = answer->second->value("rounds", Json());
    }
    steps.push_back(std::move(m));
  }
  mark_gpu_steps(planned, hosts, steps);
  return steps;
}

GpuHosts gpu_hosts(bool simulated, decltype(GpuHosts::facts) facts, const Spec* spec) {
  const auto adopted = [spec](const std::string& name) {
    const NodeSpec* node = spec ? spec->node(name) : nullptr;
    return node && node->adopt.declared();
  };
  const auto running = [spec](const std::string& name) {
    const NodeSpec* node = spec ? spec->node(name) : nullptr;
    return node && is_generated(*node);
  };
  return {simulated, std::move(facts), adopted, running};
}

const HardwareFacts* Inventories::of(const std::string& node) {
  auto found = taken_.find(node);
  if (found == taken_.end()) found = taken_.emplace(node, source_(node).facts()).first;
  return found->second.get();
}

std::set<std::string> checked_for_gpus(const Plan& plan) {
  std::set<std::string> nodes;
  for (const auto& action : plan.actions)
    if (action.kind == ActionKind::check && !nodes.count(action.node) && has_gpu_checks(action.params))
      nodes.insert(action.node);
  return nodes;
}

const std::set<std::string>& GpuChecksOfPlan::of(const std::shared_ptr<const Plan>& plan) {
  if (plan_ == plan) return nodes_;
  nodes_ = checked_for_gpus(*plan);
  plan_ = plan;
  return nodes_;
}

bool has_real_gpus(const HardwareFacts* facts) {
  return facts && compute_gpus(*facts) != static_cast<size_t>(simulated_gpus(*facts));
}

std::optional<Check> unplanned_gpus(const std::set<std::string>& checked, const std::string& node,
                                    const HardwareFacts* facts) {
  if (!has_real_gpus(facts)) return std::nullopt;
  if (checked.empty() || checked.count(node)) return std::nullopt;
  Check out;
  out.name = "gpus/planned";
  out.title = "GPUs are measured";
  out.mandatory = true;
  out.verdict = Verdict::skipped;
  out.expected_text = "measured";
  out.measured_text = fmt::format("{} found", compute_gpus(*facts));
  out.derivation = "every GPU that is found must be measured";
  out.reason = fmt::format(
      "GPUs appeared after the plan was made, so the plan has no checks for them; to measure them, run "
      "`muster "
      "accept --limit {}`",
      node);
  return out;
}

Status judge(CurrentSpec& spec, KeptOfPlan& kept, const Executor& executor, const Action& action,
             const Json& result) {
  const OwnResult own = own_result(spec, kept, executor, action, result);
  TRY_(judge_own(own, kept, executor, action.node));
  for (const auto& step : own.steps) {
    const std::string outcome = text_at(step.result, "outcome");
    if (ran_alone(step)) continue;
    if (step.mandatory && !step.members.empty() && outcome != "measured" && !only_starts(step) &&
        step.status != kNotLookedAt)
      return fail(Code::failed, fmt::format("{}: {}", step.group, text_at(step.result, "error")));
  }
  return Ok{};
}

std::string reservation(CurrentSpec& spec, KeptOfPlan& kept, const Executor& executor, const Action& action,
                        const Json& result) {
  for (const auto& check : own_result(spec, kept, executor, action, result).checks)
    if (check.missed_floor) return reason_of(check);
  return "";
}

std::optional<FollowUp> follow_up(CurrentSpec& spec, KeptOfPlan& kept, const Executor& executor,
                                  const Action& action, const std::vector<Json>& results) {
  if (results.empty()) return std::nullopt;
  OwnResult own = own_result(spec, kept, executor, action, results.front());
  if (!judge_own(own, kept, executor, action.node).ok()) return std::nullopt;
  const wire::Step* group = led_group(kept.steps.of(executor.shared_plan(), action), results.front());
  // Tests run one after the other, so each result is the next round of the first test that needs one.
  bool followed = false;
  size_t next = 1;
  FactsByNode facts;
  if (own.facts) facts[action.node] = own.facts.get();
  Json settled = results.front();
  for (auto& step : own.steps) {
    if (step.members.empty() || step.result.is_null() || could_not_run(step) ||
        collective_passed(step, facts))
      continue;
    step.rounds = Json::array();
    for (auto pairs = next_pairs(step, facts); !pairs.empty(); pairs = next_pairs(step, facts)) {
      if (next == results.size()) return FollowUp{order_of_pairs(action, step.id, pairs), nullptr};
      step.rounds.push_back(list_at(answer_of(results[next++], step.id), "parts"));
    }
    settled = with_rounds(std::move(settled), step.id, step.rounds);
    followed = true;
  }
  if (group && next == results.size())
    return FollowUp{order_of_goodbye(action, group->id), nullptr, "making the other nodes stop serving"};
  followed = followed || group;
  return followed ? std::optional(FollowUp{nullptr, std::move(settled)}) : std::nullopt;
}

}  // namespace muster
