#include "controller/plan/plan_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/standin.h"

namespace muster {
namespace {

std::string item_label(const Json& item, size_t index) {
  if (item.is_string()) return item.get<std::string>();
  if (item.is_object() && item.contains("name") && item["name"].is_string())
    return item["name"].get<std::string>();
  return std::to_string(index);
}

// For a step whose list is empty on this node, or whose `when` is false: the report shows why it was not run.
PlannedStep not_here(const PlaybookStep& step, const std::string& id, const std::string& why) {
  PlannedStep planned;
  planned.name = step.name;
  planned.stage = step.stage;
  planned.on = step.on;
  wire::Step out;
  out.id = id;
  out.module = "not_applicable";
  out.phase = step.phase;
  out.params = {{"reason", why}};
  out.mandatory = false;
  planned.rendered = std::make_shared<const RenderedStep>(std::move(out));
  return planned;
}

class StepPlanner {
 public:
  StepPlanner(const Playbook& playbook, NodeContext& context, std::vector<std::string>& problems)
      : playbook_(playbook), context_(context), problems_(problems), home_(context.view()) {
    context_.set_optional(playbook_.optional_vars);
  }

  std::vector<PlannedStep> run(const std::string& phase) {
    for (const auto& step : playbook_.steps) {
      if (step.phase != phase) continue;
      if (is_among(step)) plan(step);
      context_.set_item(nullptr);
      context_.enter(home_);
    }
    return std::move(out_);
  }

 private:
  std::string id_of(const PlaybookStep& step) const { return playbook_.name + "/" + step.name; }

  void complain(const PlaybookStep& step, const std::string& text) {
    problems_.push_back(fmt::format("playbook {}, line {}, step '{}' on {}: {}", playbook_.name, step.line,
                                    step.name, context_.node().name, text));
  }

  // True if the step's `on` includes this node. If the item is a storage section, `on: leader` means the
  // leader of that section.
  bool is_for(const PlaybookStep& step, const Json& item) const {
    if (step.among == kGroup) return true;  // assign_groups()
    const bool leads = context_.leads();
    const bool leads_it = item.is_object() ? item.value("is_leader", leads) : leads;
    return step.on == "all" || (step.on == "leader") == leads_it;
  }

  // False if this node is not one that `among` selects. If it selects none, the leader of all nodes reports
  // why.
  bool is_among(const PlaybookStep& step) {
    if (step.among.empty() || step.among == kGroup) return true;
    const NodeView view = context_.cluster().of(context_.playbook(), step.among);
    if (!view.set->has(context_.node())) {
      if (view.set->members.empty() && context_.leads()) say_why(step);
      return false;
    }
    context_.enter(view);
    return true;
  }

  // A cluster of one node has no steps between nodes, so no reason is reported.
  void say_why(const PlaybookStep& step) {
    if (step.otherwise.empty()) return;
    if (step.phase != "cluster") return add_not_here(step);
    if (home_.set->members.size() < 2) return;
    add_not_here(step);
    out_.back().on = "all";  // other nodes do not need to wait for it
    out_.back().about = context_.view().set;
  }

  void add_not_here(const PlaybookStep& step) {
    const auto why = context_.cluster().rendered().text(step.otherwise, context_);
    if (!why.ok()) complain(step, why.error().message);
    out_.push_back(not_here(step, id_of(step), why.ok() ? *why : step.otherwise));
    ids_.insert(out_.back().step().id);
  }

  void plan(const PlaybookStep& step) {
    if (step.for_each.empty()) {
      if (!is_for(step, Json()) || plan_item(step, id_of(step))) return;
      if (step.among != kGroup || context_.leads()) say_why(step);
      return;
    }
    const Json* list = context_.find(step.for_each);
    if (!list || !list->is_array())
      return complain(step, "for_each: '" + step.for_each + "' is not a list in the context");
    const Json& items = *list;
    if (items.empty() && !step.otherwise.empty() && is_for(step, Json())) add_not_here(step);
    const NodeView all = context_.view();
    const std::string what_it_is =
        step.for_each == "own_gpus" && has_stand_ins() ? fmt::format(", {}", kSimulatedGpu) : "";
    for (size_t i = 0; i < items.size(); ++i) {
      if (!is_for(step, items[i])) continue;
      // A step for a storage section is about the nodes that mount it.
      NodeSet* section = step.for_each.starts_with("storage_") && items[i].is_object()
                             ? context_.cluster().of_section(items[i].value("name", ""))
                             : nullptr;
      context_.enter(section ? NodeView{section, all.leader} : all);
      context_.set_item(&items[i]);
      plan_item(step, id_of(step) + "[" + item_label(items[i], i) + what_it_is + "]");
    }
  }

  // The step's name states that the node's GPUs are simulated, in the plan, the logs and the report.
  bool has_stand_ins() const {
    const auto& machines = context_.cluster().machines();
    const auto found = machines.find(context_.node().name);
    return found != machines.end() && simulated_gpus(*found->second) > 0;
  }

  // False if `when` is false.
  bool plan_item(const PlaybookStep& step, std::string id) {
    const std::string wanted = id_of(step);
    for (int n = 2; !ids_.insert(id).second; ++n) id = fmt::format("{}#{}", wanted, n);
    auto rendered = context_.cluster().rendered().of(step, id, context_);
    if (!rendered.ok()) {
      complain(step, rendered.error().message);
      return true;
    }
    if (!*rendered) return false;
    PlannedStep planned{step.name, *rendered, step.stage, step.on, context_.view().set};
    if (const auto* set = context_.set_of((*rendered)->peers)) {
      planned.peers = set->text_without(context_.node());
      planned.peers_of = set;
    }
    out_.push_back(std::move(planned));
    return true;
  }

  const Playbook& playbook_;
  NodeContext& context_;
  std::vector<std::string>& problems_;
  const NodeView home_;
  std::vector<PlannedStep> out_;
  std::set<std::string> ids_;
};

}  // namespace

SharedText PlannedStep::text() const {
  SharedText out(rendered->text);
  if (rendered->peers.empty()) return out;
  out.add(peers);
  out.add(rendered->rest);
  return out;
}

std::vector<PlannedStep> plan_steps(const Playbook& playbook, const std::string& phase, NodeContext& context,
                                    std::vector<std::string>& problems) {
  return StepPlanner(playbook, context, problems).run(phase);
}

}  // namespace muster
