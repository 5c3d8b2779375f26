// What an operator approved once for all batches of a rollout: the images of one revision of the spec, for
// the nodes of its roles. Each batch's plan must lie within it. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/time.h"
#include "controller/plan/plan.h"
#include "controller/rollout/rollout_policy.h"
#include "controller/spec/spec.h"

namespace muster::rollout {

struct ApprovedImage {
  std::string digest;      // of the image
  std::string built_from;  // digest of the recipe and all that is baked in; empty: not known
  bool operator==(const ApprovedImage&) const = default;
};

struct Approval {
  std::string by;
  TimeMs time = 0;
  int64_t spec_revision = 0;
  std::string spec_digest;
  std::vector<std::string> roles;
  std::map<std::string, ApprovedImage> images;  // by name; of the nodes of the roles
  bool rebuilt_images = false;                  // RolloutSpec::rebuilt_images
};

// A revision of the spec, and the images that are built.
struct Declared {
  int64_t revision = 0;
  std::string digest;
  const Spec& spec;
  std::map<std::string, ApprovedImage> built;
};

Policy policy_of(const RolloutSpec& rollout);
// What would be approved now, without `by` and `time`. invalid: the spec has no section `rollout`. not_found:
// an image that a node of the roles has is not built.
Result<Approval> to_approve(const Declared& now);
// Of all but `by` and `time`: what an operator was shown, and approves.
std::string digest_of(const Approval& approval);
// View::target: the images and the policy.
std::string target_of(const Approval& now, const Policy& policy);
// Lines for an operator: what it allows, and what is never done.
std::vector<std::string> effects_of(const Approval& approval);

// Why the approval does not cover what is declared now; "": it does.
std::string not_covered(const Approval& approved, const Approval& now);

struct BatchNodes {
  std::set<std::string> nodes, prefetch;
};
// What in this plan the approval does not cover; "": nothing. Covered are the batch's nodes with the images
// of `now`, the other slots of the next batch's nodes, and steps by which storage servers allow nodes to
// mount; no disk is destroyed.
std::string beyond(const Approval& now, const Plan& plan, const BatchNodes& batch);

Json to_json(const Approval& approval);
Result<Approval> approval_from_json(const Json& json);  // invalid

}  // namespace muster::rollout
