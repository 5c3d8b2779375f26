#include "controller/bringup/measured_steps.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/json_at.h"

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

// Returns the nodes of a step that tests several nodes: those that the agent reports and the plan
// names.
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
  return {simulated, std::move(facts), adopted};
}

}  // namespace muster
