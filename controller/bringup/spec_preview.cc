#include "controller/bringup/spec_preview.h"

#include <algorithm>
#include <utility>

#include "base/digest.h"
#include "base/json_dump.h"
#include "base/secrets.h"
#include "controller/image/service/image_request.h"
#include "controller/image/service/image_service.h"
#include "controller/plan/plan_preview.h"

namespace muster {
namespace {

// In place of the digest of an image that is not built.
constexpr const char* kToBeBuilt = "to be built";
constexpr size_t kMostChecked = 64;  // nodes whose agents check steps at the same time
constexpr size_t kMostStages = 3;    // wake, discover, the others

struct Stage {
  PlannerInput in;
  PlanOutcome outcome;
  std::string error = {};  // why there is no outcome
};

// As if these images were built; what is known of an older build stays.
void assume_built(const std::vector<DueImage>& due, PlannerInput& in) {
  for (const DueImage& image : due) {
    PlannerImage& planned = in.images[image.name];
    planned.digest = kToBeBuilt;
    planned.manifest_path.clear();
    planned.trial = true;
  }
}

// True if nodes of the request are left for the plan after this one, which wakes or discovers others first.
// The request then skips those that this plan has dealt with; naming the rest would plan them differently.
bool go_on(const Plan& plan, PlannerInput& in) {
  if (plan.kind != PlanKind::wake && plan.kind != PlanKind::discover) return false;
  PlanRequest& request = in.request;
  request.skip.insert(plan.nodes.begin(), plan.nodes.end());
  request.skip.insert(plan.left_out.begin(), plan.left_out.end());
  return std::any_of(in.spec.nodes.begin(), in.spec.nodes.end(), [&](const NodeSpec& node) {
    const auto& named = request.nodes;
    return !request.skip.count(node.name) &&
           (named.empty() || std::find(named.begin(), named.end(), node.name) != named.end());
  });
}

// An error of the first plan is that of the whole; one of a later plan is shown with what precedes it.
Result<std::vector<Stage>> stages_of(PlannerInput in) {
  std::vector<Stage> out;
  while (true) {
    auto outcome = make_plan(in);
    if (!outcome.ok() && out.empty()) return outcome.error();
    if (!outcome.ok()) {
      out.push_back({in, {}, outcome.error().message});
      return out;
    }
    out.push_back({in, std::move(outcome).value()});
    const Plan& plan = out.back().outcome.plan;
    if (!out.back().outcome.refusals.empty() || out.size() == kMostStages || !go_on(plan, in)) return out;
  }
}

// The plan of the named nodes without those that it refuses. None: there is none.
std::optional<Plan> plan_of_unrefused(PlannerInput in) {
  auto& nodes = in.request.nodes;
  while (!nodes.empty()) {
    auto made = make_plan(in);
    if (!made.ok()) return std::nullopt;
    if (made->refusals.empty()) return std::move(made->plan);
    const auto refused = [&](const std::string& node) {
      return std::any_of(made->refusals.begin(), made->refusals.end(),
                         [&](const Refusal& refusal) { return refusal.node == node; });
    };
    if (std::erase_if(nodes, refused) == 0) return std::nullopt;
  }
  return std::nullopt;
}

// The steps that the nodes of `plan` have under the present spec, with the same builds of images: whether an
// older one runs decides which steps are baked into it.
std::optional<Plan> present_steps(const PreviewSources& sources, const Stage& stage) {
  const Plan& plan = stage.outcome.plan;
  if (!sources.before || plan.kind == PlanKind::wake || plan.kind == PlanKind::discover) return std::nullopt;
  std::vector<std::string> nodes;
  for (const std::string& node : plan.nodes)
    if (!plan.only_serves(NodeName(node))) nodes.push_back(node);
  PlannerInput in = input_of_steps(planner_input(*sources.before), nodes);
  in.images = stage.in.images;
  std::vector<DueImage> others;
  for (const std::string& name : images_needed_by(in.spec))
    if (!in.images.count(name)) others.push_back({name, ""});
  assume_built(others, in);
  return plan_of_unrefused(std::move(in));
}

Json to_preview(const Destruction& lost) {
  return {{"node", lost.node},   {"group", lost.group},           {"serial", lost.serial},
          {"model", lost.model}, {"size_bytes", lost.size_bytes}, {"content", lost.content},
          {"why", lost.why},     {"every_disk", lost.every_disk}};
}

Json to_preview(const Stage& stage, const PreviewSources& sources) {
  const Plan& plan = stage.outcome.plan;
  const auto& refusals = stage.outcome.refusals;
  Json refused = Json::array();
  for (const Refusal& refusal : refusals)
    refused.push_back({{"node", refusal.node}, {"rule", refusal.rule}, {"message", refusal.message}});
  if (!stage.error.empty()) return {{"error", stage.error}, {"refusals", refused}};
  if (!refusals.empty()) return {{"refusals", refused}};
  const auto present = present_steps(sources, stage);
  Json nodes = Json::array(), destroys = Json::array();
  for (const NodeChange& change : node_changes_of(stage.in, stage.outcome, present ? &*present : nullptr)) {
    Json node = record_json(change);
    const auto time = sources.facts_times.find(change.node);
    node["facts_time"] = time == sources.facts_times.end() ? 0 : time->second;
    nodes.push_back(std::move(node));
  }
  for (const Destruction& lost : plan.destroys) destroys.push_back(to_preview(lost));
  return {{"kind", to_string(plan.kind)}, {"nodes", nodes},      {"unchanged", plan.unchanged},
          {"left_out", plan.left_out},    {"notes", plan.notes}, {"left_out_rules", plan.left_out_rules},
          {"destroys", destroys},         {"refusals", refused}};
}

// Who needs a secret.
struct Users {
  std::set<std::string> nodes, receivers;
};

void add_reference(const std::string& text, const std::string& receiver,
                   std::map<std::string, Users>& users) {
  if (is_secret_reference(text)) users[text.substr(kSecretPrefix.size())].receivers.insert(receiver);
}

Json unset_secrets(const Spec& spec, const std::vector<Stage>& stages, const std::set<std::string>& set) {
  std::map<std::string, Users> users;
  for (const auto& node : spec.nodes)
    if (!node.power.secret.empty()) users[node.power.secret].nodes.insert(node.name);
  for (const auto& [name, receiver] : spec.notify.receivers) {
    add_reference(receiver.webhook.url, name, users);
    for (const auto& [header, value] : receiver.webhook.headers) add_reference(value, name, users);
  }
  for (const Stage& stage : stages)
    for (const auto& [name, nodes] : secrets_of_steps(stage.outcome.plan))
      users[name].nodes.insert(nodes.begin(), nodes.end());
  Json out = Json::array();
  for (const auto& [name, by] : users)
    if (!set.count(name)) out.push_back({{"name", name}, {"nodes", by.nodes}, {"receivers", by.receivers}});
  return out;
}

Json to_preview(const std::vector<DueImage>& due) {
  Json out = Json::array();
  for (const DueImage& image : due) {
    out.push_back({{"name", image.name}, {"why", image.why}});
    if (!image.error.empty()) out.back()["error"] = image.error;
  }
  return out;
}

std::string why_not_checked(const NodeObservation& seen) {
  if (!seen.online || !seen.mode) return "its agent does not answer";
  return *seen.mode == wire::Mode::ram ? "it runs the RAM system" : "";
}

// Of all nodes of the request, unchanged ones included, whose agents run in an installed or adopted system.
void choose_live_steps(const std::vector<Stage>& stages, PreviewSources& sources) {
  const Stage& last = stages.back();
  const auto& wanted = stages.front().in.request.nodes;
  std::vector<std::string> nodes;
  for (const auto& node : last.in.spec.nodes) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), node.name) == wanted.end()) continue;
    const auto seen = last.in.nodes.find(node.name);
    const std::string why = why_not_checked(seen == last.in.nodes.end() ? NodeObservation() : seen->second);
    if (why.empty())
      nodes.push_back(node.name);
    else
      sources.not_checked[node.name] = why;
  }
  if (nodes.size() > kMostChecked) {
    for (size_t i = kMostChecked; i < nodes.size(); ++i)
      sources.not_checked[nodes[i]] = "too many nodes at once: name it with --limit";
    nodes.resize(kMostChecked);
  }
  if (nodes.empty()) return;
  if (const auto plan = plan_of_unrefused(input_of_steps(last.in, nodes)))
    sources.steps = checkable_steps(*plan);
  for (const std::string& node : nodes)
    if (!sources.steps.count(node)) sources.not_checked[node] = "no steps could be planned for it";
}

// Of all that is approved with a preview: the text, the images and the plans, with what they destroy.
std::string digest_of(const std::string& text, const std::vector<DueImage>& due,
                      const std::vector<Stage>& stages) {
  Json plans = Json::array();
  for (const Stage& stage : stages) plans.push_back(plan_digest(stage.outcome.plan).str());
  const Json all = {{"text", text}, {"images", to_preview(due)}, {"plans", plans}};
  return sha256(dump_ascii(all));
}

std::vector<std::string> removed_nodes(const PreviewSources& sources, const Spec& spec) {
  std::vector<std::string> out;
  if (sources.before)
    for (const auto& node : sources.before->spec->spec.nodes)
      if (!spec.node(node.name)) out.push_back(node.name);
  return out;
}

}  // namespace

Result<MadePlanPtr> preview_of(const PlanningSnapshot& after, PreviewSources& sources,
                               const DaemonOptions& options) {
  PlannerInput in = planner_input(after);
  const auto due = due_images(options, in.spec, in.playbooks, images_needed_by(in.spec));
  assume_built(due, in);
  TRY(const auto stages, stages_of(in));
  const PlanOutcome& first = stages.front().outcome;
  Json out = sources.about;
  out["images"] = to_preview(due);
  out["secrets"] = unset_secrets(in.spec, stages, sources.secrets);
  out["plans"] = Json::array();
  for (const Stage& stage : stages) out["plans"].push_back(to_preview(stage, sources));
  const bool whole = std::all_of(stages.begin(), stages.end(), [](const Stage& stage) {
    return stage.error.empty() && stage.outcome.refusals.empty();
  });
  out["digest"] = whole ? digest_of(after.spec->digest, due, stages) : "";
  const bool exact = due.empty() && first.refusals.empty() && !first.plan.empty();
  out["first_plan"] = exact ? plan_digest(first.plan).str() : "";
  out["removed"] = removed_nodes(sources, in.spec);
  if (sources.live) choose_live_steps(stages, sources);
  auto made = std::make_shared<MadePlan>();
  made->shown = dump_json(out) + "\n";
  return MadePlanPtr(std::move(made));
}

}  // namespace muster
