#include "controller/plan/plan_preview.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/json_dump.h"
#include "base/secrets.h"
#include "base/unified_diff.h"

namespace muster {
namespace {

// Steps of more nodes are not compared: their texts are parsed, and shown, node by node.
constexpr size_t kMostCompared = 256;
constexpr size_t kLongestValue = 200;  // of a parameter in one line

using Actions = std::vector<const Action*>;

std::map<std::string, Actions> actions_by_node(const Plan& plan) {
  std::map<std::string, Actions> out;
  for (const Action& action : plan.actions) out[action.node].push_back(&action);
  return out;
}

bool has_kind(const Actions& actions, ActionKind kind) {
  return std::any_of(actions.begin(), actions.end(), [&](const Action* a) { return a->kind == kind; });
}

// Steps that only return a node to its old system are not what the spec declares.
std::set<std::string> step_texts(const Actions& actions) {
  std::set<std::string> out;
  for (const Action* action : actions)
    if (!action->when_failed)
      for (const SharedText& step : action->params.steps()) out.insert(step.text());
  return out;
}

// Those of `texts` that are not among `others`.
std::map<std::string, Json> by_step_id(const std::set<std::string>& texts,
                                       const std::set<std::string>& others) {
  std::map<std::string, Json> out;
  for (const std::string& text : texts)
    if (!others.count(text))
      if (auto step = parse_json(text); step.ok() && step->is_object())
        out.emplace(step->value("id", ""), std::move(step).value());
  return out;
}

std::string value_in_line(const Json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : dump_json(value);
  return text.size() <= kLongestValue ? text : text.substr(0, kLongestValue) + "...";
}

bool has_lines(const Json& value) {
  return value.is_string() && value.get_ref<const std::string&>().find('\n') != std::string::npos;
}

std::string value_change(const std::string& key, const Json& before, const Json& after) {
  if ((before.is_string() || before.is_null()) && (after.is_string() || after.is_null()) &&
      (has_lines(before) || has_lines(after)))
    return unified_diff(before.is_string() ? before.get<std::string>() : "",
                        after.is_string() ? after.get<std::string>() : "", key, key);
  if (before.is_null()) return fmt::format("+{}: {}\n", key, value_in_line(after));
  if (after.is_null()) return fmt::format("-{}: {}\n", key, value_in_line(before));
  return fmt::format("-{0}: {1}\n+{0}: {2}\n", key, value_in_line(before), value_in_line(after));
}

// Of the parameters, and of what else a step has: limits, its own verify.
std::string step_diff(const Json& before, const Json& after) {
  std::string out;
  const auto compare = [&](const Json& was, const Json& is, bool outer) {
    std::set<std::string> keys;
    for (const Json* side : {&was, &is})
      if (side->is_object())
        for (const auto& [key, value] : side->items()) keys.insert(key);
    for (const std::string& key : keys) {
      if (outer && key == "params") continue;
      const Json old = was.is_object() ? was.value(key, Json()) : Json();
      const Json now = is.is_object() ? is.value(key, Json()) : Json();
      if (old != now) out += value_change(key, old, now);
    }
  };
  compare(before.value("params", Json()), after.value("params", Json()), false);
  compare(before, after, true);
  return out;
}

std::vector<ChangedStep> changed_steps(const Actions& before, const Actions& after) {
  const auto was = step_texts(before), is = step_texts(after);
  const auto gone = by_step_id(was, is), fresh = by_step_id(is, was);
  std::vector<ChangedStep> out;
  for (const auto& [id, step] : fresh) {
    const auto old = gone.find(id);
    const bool added = old == gone.end();
    out.push_back({id, step.value("module", ""), added ? "added" : "changed",
                   added ? "" : step_diff(old->second, step)});
  }
  for (const auto& [id, step] : gone)
    if (!fresh.count(id)) out.push_back({id, step.value("module", ""), "removed", ""});
  return out;
}

// Not steps that test an effect, which may take minutes, nor those about nodes that are live at the moment.
bool is_checkable(const Json& step) {
  static const std::set<std::string> kTests = {"probe", "reboot",    "shared_read", "shared_write",
                                               "slot",  "ssh_probe", "wait_for"};
  const std::string module = step.value("module", "");
  const Json params = step.value("params", Json::object());
  return !kTests.count(module) && !module.starts_with("accept") && !params.contains("peers_live") &&
         !params.contains("next_live");
}

std::string work_of(const Plan& plan, const NodeObservation& seen, const NodeName& node,
                    const Actions& actions) {
  if (plan.kind == PlanKind::discover) return "discover";
  if (plan.kind == PlanKind::wake) return "wake";
  if (plan.only_serves(node)) return "serve";
  if (has_kind(actions, ActionKind::write_slot)) return "re-image";
  if (has_kind(actions, ActionKind::image)) return seen.image_digest.empty() ? "install" : "re-image";
  return "configure";
}

}  // namespace

std::vector<NodeChange> node_changes_of(const PlannerInput& in, const PlanOutcome& made, const Plan* before) {
  static const NodeObservation kNever;
  const Plan& plan = made.plan;
  const auto actions = actions_by_node(plan);
  const auto earlier = before ? actions_by_node(*before) : std::map<std::string, Actions>();
  std::vector<NodeChange> out;
  size_t compared = 0;
  for (const std::string& name : plan.nodes) {
    const NodeSpec* node = in.spec.node(name);
    const auto planned = actions.find(name);
    if (!node || planned == actions.end()) continue;
    const auto known = in.nodes.find(name);
    const NodeObservation& seen = known == in.nodes.end() ? kNever : known->second;
    NodeChange change;
    change.node = name;
    change.work = work_of(plan, seen, node->name, planned->second);
    if (const auto why = made.why.find(name); why != made.why.end()) change.why = why->second;
    change.accepted_again = has_kind(planned->second, ActionKind::check);
    const auto old = earlier.find(name);
    change.compared = old != earlier.end() && ++compared <= kMostCompared;
    if (change.compared) change.steps = changed_steps(old->second, planned->second);
    out.push_back(std::move(change));
  }
  return out;
}

PlannerInput input_of_steps(PlannerInput in, const std::vector<std::string>& nodes) {
  in.request.nodes.clear();
  in.request.force.clear();
  in.request.skip.clear();
  for (const std::string& name : nodes)
    if (in.spec.node(name)) in.request.nodes.push_back(name);
  for (auto& [name, seen] : in.nodes) seen.config_digest.clear();
  return in;
}

std::map<std::string, Json> checkable_steps(const Plan& plan) {
  std::map<std::string, Json> out;
  for (const Action& action : plan.actions) {
    if (action.kind != ActionKind::steps || action.when_failed || plan.only_serves(action.node)) continue;
    for (const SharedText& text : action.params.steps())
      if (const auto step = parse_json(text.text()); step.ok() && is_checkable(*step)) {
        Json& steps = out[action.node];
        if (steps.is_null()) steps = Json::array();
        steps.push_back(*step);
      }
  }
  return out;
}

std::map<std::string, std::vector<std::string>> secrets_of_steps(const Plan& plan) {
  const std::string begin = "\"" + std::string(kSecretPrefix);
  std::map<std::string, std::vector<std::string>> out;
  const auto note = [&](const NodeName& node, std::string_view text) {
    for (size_t at = 0; (at = text.find(begin, at)) != text.npos;) {
      at += begin.size();
      auto& nodes = out[std::string(text.substr(at, text.find('"', at) - at))];
      if (nodes.empty() || nodes.back() != node.str()) nodes.push_back(node.str());
    }
  };
  for (const Action& action : plan.actions)
    for (const SharedText& step : action.params.steps())
      step.each([&](std::string_view piece) { note(action.node, piece); });
  return out;
}

}  // namespace muster
