#include "controller/bringup/acceptance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/facts.h"
#include "base/json_at.h"
#include "controller/bringup/inventories.h"
#include "controller/executor/executor.h"
#include "controller/report/collective.h"
#include "controller/report/gpu_checks.h"
#include "controller/report/measured.h"
#include "controller/report/stand_ins.h"
#include "controller/report/verdict.h"
#include "controller/spec/drive_models.h"
#include "controller/spec/playbook.h"

namespace muster {

using reported::list_of, reported::whole_number_of;

namespace {

// Default time limit of each pair test that may follow a multi-node test (pair_deadline_seconds overrides
// it).
constexpr double kPairSeconds = 2;
constexpr int kPairDeadlineSeconds = 60;

// The result of an action of the current run, and what is needed to judge the action's node alone.
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
      action.node, kept.steps.of(executor.shared_plan(), action), list_of(result, "steps"),
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

// Returns the result's entry for a step; null: none.
Json answer_of(const Json& result, const std::string& id) {
  for (const Json& step : list_of(result, "steps"))
    if (text_at(step, "step") == id) return step.value("result", Json());
  return nullptr;
}

// Makes an order that runs only this step of the action, on each of these pairs.
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
    const int64_t deadline = whole_number_of(params, "pair_deadline_seconds");
    params["deadline_seconds"] = deadline > 0 ? deadline : kPairDeadlineSeconds;
    order["steps"].push_back(std::move(step));
  }
  return order;
}

// Makes the order that ends the servers on the group's nodes, which run until the leader has nothing more to
// measure.
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

// Returns the step with which this action led a group; null: there is none, or the step could not be run, so
// no node serves any more (agent/checks/accept_group.cc).
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

Status judge(CurrentSpec& spec, KeptOfPlan& kept, const Executor& executor, const Action& action,
             const Json& result) {
  const OwnResult own = own_result(spec, kept, executor, action, result);
  TRY_(judge_own(own, kept, executor, action.node));
  for (const auto& step : own.steps) {
    const std::string outcome = text_at(step.result, "outcome");
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
      step.rounds.push_back(list_of(answer_of(results[next++], step.id), "parts"));
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
