#include "controller/plan/passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace muster {
namespace {

constexpr DurationMs kStage = 20 * kMinute, kCheck = 40 * kMinute;

struct Stage {
  std::string playbook;
  int number = 1;
};

// Includes the steps' own deadlines: a burn-in takes hours.
DurationMs check_timeout(const std::vector<PlannedStep>& steps) {
  DurationMs sum = 5 * kMinute;
  for (const auto& planned : steps) {
    const Json& params = planned.step().params;
    const auto it = params.find("deadline_seconds");
    if (it != params.end() && it->is_number())
      sum += it->get<int64_t>() * kSecond;
    else
      sum += 2 * kMinute;
  }
  return std::max(kCheck, sum);
}

// Returns the playbooks in the order in which nodes first name them, but each after all playbooks that any
// role lists before it. If two roles contradict each other, the first one that lists both playbooks decides.
std::vector<std::string> playbooks_in_order(const Planning& p) {
  std::vector<std::string> waiting, out;
  std::map<std::string, std::set<std::string>> behind;
  std::set<std::string> roles;
  for (const auto& d : p.drafts) {
    if (!roles.insert(d.spec->role).second) continue;
    const auto& names = p.playbooks_of(d);
    for (size_t i = 0; i < names.size(); ++i) {
      if (!std::count(waiting.begin(), waiting.end(), names[i])) waiting.push_back(names[i]);
      for (size_t j = 0; j < i; ++j)
        if (!behind[names[j]].count(names[i])) behind[names[i]].insert(names[j]);
    }
  }
  while (!waiting.empty()) {
    auto next = std::find_if(waiting.begin(), waiting.end(), [&](const std::string& name) {
      return std::none_of(waiting.begin(), waiting.end(),
                          [&](const std::string& other) { return behind[name].count(other) > 0; });
    });
    if (next == waiting.end()) next = waiting.begin();
    out.push_back(*next);
    waiting.erase(next);
  }
  return out;
}

// Those of each playbook in order of number.
std::vector<Stage> stages(const Planning& p) {
  std::vector<Stage> out;
  for (const auto& name : playbooks_in_order(p)) {
    std::set<int> numbers;
    for (const auto& d : p.drafts)
      if (const auto it = d.cluster.find(name); it != d.cluster.end())
        for (const auto& s : it->second) numbers.insert(s.stage);
    for (const int n : numbers) out.push_back({name, n});
  }
  return out;
}

// The node does not continue without the leaders that serve it; other nodes do.
void put_behind_leaders(Planning& p, Draft& d, Action& a) {
  bool newest = true;
  for (auto led = p.led.rbegin(); led != p.led.rend(); ++led) {
    if (std::none_of(led->audience.begin(), led->audience.end(),
                     [&](const NodeSet* set) { return set->has(*d.spec); }))
      continue;
    if (led->node != d.spec->name && (newest || !d.behind.count(led->action)))
      a.after.push_back({led->action, true});
    newest = false;
    d.behind.insert(led->behind.begin(), led->behind.end());
    d.behind.insert(led->action);
  }
}

}  // namespace

void write_stage(Planning& p, const StageOf& stage) {
  std::vector<std::string> barrier;
  for (const auto& d : p.drafts)
    if (!d.last.empty()) barrier.push_back(d.last);
  const int behind = static_cast<int>(p.plan.barriers.size());
  bool used = false;
  std::vector<Led> led;
  for (auto& d : p.drafts) {
    std::vector<PlannedStep> steps;
    std::vector<const NodeSet*> audience;
    if (const auto* all = stage.steps_of(d))
      for (const auto& s : *all)
        if (s.stage == stage.number) {
          steps.push_back(s);
          if (s.on == "leader" && s.about && !std::count(audience.begin(), audience.end(), s.about))
            audience.push_back(s.about);
        }
    if (steps.empty()) continue;
    const bool check = stage.kind == ActionKind::check;
    const DurationMs timeout = check ? check_timeout(steps) : with_restart(kStage, steps, p.spec);
    ActionParams params = order_params(steps, check);
    if (check) name_programs(p, d, steps, !std::exchange(d.checked, true), params);
    Action& a = add(
        p, d, {stage.name, stage.kind, stage.phase, stage.title, std::move(params), timeout, check ? 1 : 2});
    if (!barrier.empty()) a.behind = behind, used = true;
    put_behind_leaders(p, d, a);
    // Other nodes do not depend on a leader's measurement.
    if (audience.empty() || check) continue;
    d.behind.insert(a.id);
    // Of the actions with the same audience in one stage, only the last one is kept.
    led.erase(std::remove_if(led.begin(), led.end(), [&](const Led& l) { return l.audience == audience; }),
              led.end());
    led.push_back({a.id, d.spec->name, d.behind, std::move(audience)});
  }
  p.led.insert(p.led.end(), led.begin(), led.end());
  if (used) p.plan.barriers.push_back(std::move(barrier));
}

void write_stages(Planning& p) {
  for (const auto& stage : stages(p)) {
    const std::string phase = stage.playbook.starts_with("storage") ? "storage" : "cluster";
    const std::string name = stage.playbook;
    write_stage(p, {stage.number, fmt::format("{}-{}", name, stage.number), phase,
                    fmt::format("{} stage {}", name, stage.number), ActionKind::steps,
                    [&name](const Draft& d) -> const std::vector<PlannedStep>* {
                      const auto it = d.cluster.find(name);
                      return it == d.cluster.end() ? nullptr : &it->second;
                    }});
  }
}

}  // namespace muster
