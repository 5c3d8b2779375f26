#include "controller/rollout/approval.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/digest.h"
#include "base/json_dump.h"
#include "controller/rollout/rebuild.h"

namespace muster::rollout {
namespace {

Json shown(const Approval& approval) {
  Json out = record_json(approval);
  out.erase("by");
  out.erase("time");
  out.erase("canaries");
  return out;
}

std::string other_image(const Approval& approved, const std::string& name, const ApprovedImage& now) {
  const auto found = approved.images.find(name);
  if (found == approved.images.end()) return fmt::format("image '{}' was not approved", name);
  const ApprovedImage& before = found->second;
  if (before.digest == now.digest) return "";
  if (!approved.rebuilt_images)
    return fmt::format("image '{}' was rebuilt (`rollout.rebuilt_images: true` allows that)", name);
  if (now.built_from.empty() || before.built_from != now.built_from)
    return fmt::format("image '{}' was built from a different recipe, or with different playbooks baked in",
                       name);
  return "";
}

std::string effect_of_builds(const Approval& approval) {
  if (approval.rebuild != Rebuild::never)
    return fmt::format(
        "images that are at least {} old are built again when a window opens (`rebuild: {}`); "
        "this approval covers images rebuilt from the same recipe",
        to_human(least_age(approval.rebuild)), word_of(kRebuilds, approval.rebuild));
  return approval.rebuilt_images ? "this approval covers images rebuilt from the same recipe"
                                 : "a rebuilt image needs a new approval";
}

// True for the kinds of actions that a re-image consists of; these are covered for nodes of the batch.
bool of_reimage(ActionKind kind) {
  switch (kind) {
    case ActionKind::netboot:
    case ActionKind::inventory:
    case ActionKind::image:
    case ActionKind::boot_disk:
    case ActionKind::steps:
    case ActionKind::check:
    case ActionKind::reboot:
    case ActionKind::write_slot:
    case ActionKind::boot_slot:
    case ActionKind::return_slot:
      return true;
    case ActionKind::power_off:
    case ActionKind::wake:
      return false;
  }
  return false;
}

bool is_within(const Plan& plan, const BatchNodes& batch, const Action& action) {
  if (batch.nodes.count(action.node)) return of_reimage(action.kind);
  if (batch.prefetch.count(action.node))
    return action.kind == ActionKind::write_slot || action.kind == ActionKind::inventory;
  return plan.only_serves(action.node) && action.kind == ActionKind::steps;
}

}  // namespace

Policy policy_of(const RolloutSpec& rollout) {
  Policy out;
  out.roles = rollout.roles;
  out.max_unavailable = {rollout.max_unavailable, rollout.max_unavailable_percent};
  out.canary = rollout.canary;
  out.failure_budget = rollout.failure_budget;
  return out;
}

Result<Approval> to_approve(const Declared& now) {
  if (!now.spec.rollout) return fail(Code::invalid, "the spec has no `rollout` section: see docs/rollout.md");
  Approval out;
  out.spec_revision = now.revision;
  out.spec_digest = now.digest;
  out.roles = now.spec.rollout->roles;
  out.rebuilt_images = now.spec.rollout->rebuilt_images;
  out.rebuild = now.spec.rollout->rebuild;
  for (const auto& node : now.spec.nodes) {
    const bool in_roles = std::find(out.roles.begin(), out.roles.end(), node.role) != out.roles.end();
    if (!in_roles || node.image.empty() || out.images.count(node.image)) continue;
    const auto built = now.built.find(node.image);
    if (built == now.built.end())
      return fail(Code::not_found,
                  fmt::format("image '{0}' is not built: run `muster image build {0}`", node.image));
    out.images[node.image] = built->second;
  }
  return out;
}

std::string digest_of(const Approval& approval) { return sha256(dump_ascii(shown(approval))); }

std::string target_of(const Approval& now, const Policy& policy) {
  Json images = Json::object();
  for (const auto& [name, image] : now.images) images[name] = image.digest;
  return sha256(dump_ascii(Json{{"spec", now.spec_digest},
                                {"images", images},
                                {"roles", policy.roles},
                                {"max_unavailable", policy.max_unavailable.count},
                                {"percent", policy.max_unavailable.percent},
                                {"canary", policy.canary},
                                {"failure_budget", policy.failure_budget}}));
}

std::vector<std::string> effects_of(const Approval& approval) {
  std::vector<std::string> images;
  for (const auto& [name, image] : approval.images)
    images.push_back(fmt::format("{} ({})", name, image.digest.substr(0, 19)));
  return {fmt::format("nodes of {} {}: {}", approval.roles.size() == 1 ? "role" : "roles",
                      fmt::join(approval.roles, ", "), fmt::join(images, ", ")),
          "written: the unused root slot of these nodes' OS disks, and the EFI system partition",
          "the nodes are drained, rebooted once, configured as declared in the spec, and tested; nodes that "
          "are not accepted roll back",
          "nodes that cannot be re-imaged in place, now or later (`through-ram` in the plan), are "
          "network-booted and written without jobs; those that are not accepted are quarantined",
          "not changed: data disks, /state, nodes of other roles (except that storage servers may allow "
          "nodes to mount)",
          effect_of_builds(approval)};
}

std::string not_covered(const Approval& approved, const Approval& now) {
  if (approved.spec_revision != now.spec_revision || approved.spec_digest != now.spec_digest)
    return fmt::format("the spec has changed: revision {} was approved, {} is current",
                       approved.spec_revision, now.spec_revision);
  for (const auto& [name, image] : now.images)
    if (const std::string why = other_image(approved, name, image); !why.empty()) return why;
  return "";
}

std::vector<Refusal> beyond(const Approval& now, const Plan& plan, const BatchNodes& batch) {
  const auto refuse = [](const NodeName& node, std::string why) {
    return std::vector<Refusal>{{node, "approval", std::move(why)}};
  };
  if (plan.kind != PlanKind::reimage)
    return refuse({}, fmt::format("the plan is of kind {}, not a re-image", to_string(plan.kind)));
  if (plan.spec_revision != now.spec_revision)
    return refuse({}, fmt::format("the plan is for revision {} of the spec, not for the current one",
                                  plan.spec_revision));
  if (!plan.destroys.empty()) {
    const Destruction& lost = plan.destroys.front();
    return refuse(lost.node, fmt::format("disk {} would be written ({})",
                                         lost.serial.empty() ? lost.model : lost.serial, lost.why));
  }
  for (const auto& [name, digest] : plan.images) {
    const auto image = now.images.find(name);
    if (image == now.images.end() || image->second.digest != digest)
      return refuse({}, fmt::format("image '{}' differs from the approved image", name));
  }
  for (const Action& action : plan.actions)
    if (!is_within(plan, batch, action))
      return refuse(action.node, fmt::format("{}: {}", action.id, action.title));
  return {};
}

Json to_json(const Approval& approval) { return record_json(approval); }

Result<Approval> approval_from_json(const Json& json) { return read_record<Approval>(json, "approval"); }

}  // namespace muster::rollout
