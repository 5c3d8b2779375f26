#include "controller/plan/passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json_dump.h"
#include "controller/plan/gpu_policy.h"
#include "controller/plan/shared_text.h"

namespace muster {
namespace {

// Applies `acceptance: { gpu: mandatory }` to the node's acceptance steps.
void hold_gpus(const Planning& p, const Draft& d, Draft& into, std::vector<std::string>& problems) {
  if (!p.spec.gpu_acceptance.mandatory) return;
  if (!p.in.gpu_results)
    return problems.push_back("acceptance.gpu is mandatory, but no signed results were read");
  const auto seen = p.machines.find(d.spec->name);
  hold_to_results(*p.in.gpu_results, *d.spec, seen == p.machines.end() ? nullptr : seen->second, into.accept,
                  problems);
}

void add_steps(const char* name, const std::vector<PlannedStep>& steps, JsonDigest& digest) {
  digest.add(dump_json(Json(name)) + ":[");
  for (size_t i = 0; i < steps.size(); ++i) {
    if (i > 0) digest.add(",");
    steps[i].text().each([&](std::string_view piece) { digest.add(piece); });
  }
  digest.add("]");
}

// Returns the digest of {"image", "steps": {"accept", "accept_cluster", "cluster": {PLAYBOOK: steps},
// "configure"}}; without "cluster" if there are no such steps.
Digest digest_of(const Digest& image, const Draft& d) {
  JsonDigest digest;
  digest.add("{\"image\":" + dump_json(Json(image)) + ",\"steps\":{");
  add_steps("accept", d.accept, digest);
  digest.add(",");
  add_steps("accept_cluster", d.accept_cluster, digest);
  const char* before = ",\"cluster\":{";
  for (const auto& [name, steps] : d.cluster) {
    digest.add(std::exchange(before, ","));
    add_steps(name.c_str(), steps, digest);
  }
  digest.add(d.cluster.empty() ? "," : "},");
  add_steps("configure", d.configure, digest);
  digest.add("}}");
  return Digest(digest.finish());
}

// True if the playbook's steps of phase `image` are baked into the node's image. For a node on a different
// build this is unknown: it gets the steps, which change nothing if they were baked in. The digest (`real` is
// false) ignores the build, because the node is as declared in either case.
bool is_baked(const Planning& p, const Playbook& playbook, const Draft& d, bool real) {
  if (real && ((d.older && !d.imaging) || p.rolls_back())) return false;
  const auto image = p.spec.images.find(d.spec->image);
  return image != p.spec.images.end() &&
         std::count(image->second.bake.begin(), image->second.bake.end(), playbook.name) > 0;
}

void render_playbook(const Playbook& playbook, bool baked, NodeContext& context, Draft& into,
                     std::vector<std::string>& problems) {
  context.enter(playbook.name);
  for (const std::string phase : {"image", "node"}) {
    if (phase == "image" && baked) continue;
    for (auto& step : plan_steps(playbook, phase, context, problems))
      into.configure.push_back(std::move(step));
  }
  auto steps = plan_steps(playbook, "cluster", context, problems);
  if (!steps.empty()) into.cluster[playbook.name] = std::move(steps);
}

// Drops the steps that undo the newer pause steps: a node whose agent is of an earlier version is paused
// without those (in_place.cc), and adopted nodes, which have no slots, are not paused at all.
void drop_new_modules(Draft& d) {
  if (d.imaging || !d.seen->facts || !d.seen->facts->boot.running.empty()) return;
  for (auto& [name, steps] : d.cluster) std::erase_if(steps, has_new_module);
}

}  // namespace

bool has_new_module(const PlannedStep& step) {
  return step.step().module == "ceph_noout" || step.step().module == "moosefs_maintenance";
}

const Playbook* find_playbook(Planning& p, const std::string& name, bool complain) {
  const auto it = p.in.playbooks.find(name);
  if (it != p.in.playbooks.end()) return &it->second;
  if (complain && p.missing.insert(name).second) {
    std::vector<std::string> names;
    for (const auto& [known, playbook] : p.in.playbooks) names.push_back(known);
    const std::string near = nearest_spelling(name, names);
    p.problems.push_back("there is no playbook '" + name + "'" +
                         (near.empty() ? "" : ", did you mean '" + near + "'?"));
  }
  return nullptr;
}

std::vector<PlannedStep> steps_of_phase(Planning& p, const Draft& d, const std::string& phase, bool back) {
  NodeContext context({p.spec, *d.spec, d.disks, p.address, p.in.public_values, *p.cluster, true,
                       ContextInput::kNobody, ContextInput::kNobody, p.in.metrics_address,
                       p.in.request.batch.has_value()});
  std::vector<PlannedStep> steps;
  auto names = p.playbooks_of(d);
  if (back) std::reverse(names.begin(), names.end());
  for (const auto& name : names)
    if (const Playbook* playbook = find_playbook(p, name, true)) {
      context.enter(name);
      for (auto& step : plan_steps(*playbook, phase, context, p.problems)) steps.push_back(std::move(step));
    }
  return steps;
}

void render(Planning& p, Draft& d, const Digest& image_digest) {
  const std::string prefix = "acceptance/" + p.profile();
  NodeContext context({p.spec, *d.spec, d.disks, p.address, p.in.public_values, *p.cluster, true,
                       p.in.request.force, p.pausing, p.in.metrics_address, p.in.request.batch.has_value()});
  for (const bool real : {true, false}) {
    if (!real) context.forget_content();
    Draft scratch;
    Draft& into = real ? d : scratch;
    std::vector<std::string> repeated;
    std::vector<std::string>& problems = real ? p.problems : repeated;
    for (const auto& name : p.playbooks_of(d)) {
      const Playbook* playbook = find_playbook(p, name, real);
      if (playbook && !playbook->not_exercised.empty() && p.untried.insert(name).second)
        p.plan.notes.push_back("playbook " + name +
                               " has never been run on real hardware: " + playbook->not_exercised);
      if (playbook && !playbook->origin.empty() && p.own.insert(name).second)
        p.plan.notes.push_back(fmt::format("playbook {} is {}", name, playbook->origin));
      if (playbook) render_playbook(*playbook, is_baked(p, *playbook, d, real), context, into, problems);
    }
    if (!p.profile().empty())
      if (const Playbook* profile = find_playbook(p, prefix, real)) {
        if (!profile->origin.empty() && p.own.insert(prefix).second)
          p.plan.notes.push_back(fmt::format("profile {} is {}", profile->name, profile->origin));
        context.enter(std::string());
        into.accept = plan_steps(*profile, "node", context, problems);
        into.accept_cluster = plan_steps(*profile, "cluster", context, problems);
        if (p.simulated) p.simulated->change(into.accept);
        if (p.simulated) p.simulated->change(into.accept_cluster);
        hold_gpus(p, d, into, problems);
      }
    if (real) drop_new_modules(d);
    if (!real) d.digest = digest_of(image_digest, scratch);
  }
}

}  // namespace muster
