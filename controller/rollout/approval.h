// The approval of a rollout, which an operator gives once for all batches: the images of one revision of the
// spec, for the nodes of its roles. The plan of each batch must be covered by it. Pure functions, no I/O.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/record.h"
#include "base/result.h"
#include "base/time.h"
#include "controller/plan/plan.h"
#include "controller/rollout/rollout_view.h"
#include "controller/spec/spec.h"

namespace muster::rollout {

struct ApprovedImage {
  std::string digest;      // digest of the image
  std::string built_from;  // digest of the recipe and everything baked in; empty: unknown
  bool operator==(const ApprovedImage&) const = default;
};

struct Approval {
  std::string by;
  TimeMs time = 0;
  int64_t spec_revision = 0;
  std::string spec_digest;
  std::vector<std::string> roles;
  std::map<std::string, ApprovedImage> images;  // by name; only images of the roles' nodes
  bool rebuilt_images = false;                  // RolloutSpec::rebuilt_images
  std::vector<std::string> canaries = {};       // nodes that the operator named
  Rebuild rebuild = Rebuild::never;
};

// A revision of the spec, and the images that have been built.
struct Declared {
  int64_t revision = 0;
  std::string digest;
  const Spec& spec;
  std::map<std::string, ApprovedImage> built;
};

Policy policy_of(const RolloutSpec& rollout);
// Without `by`, `time` and `canaries`. Code::invalid: the spec has no `rollout` section. Code::not_found:
// an image of the roles' nodes is not built.
Result<Approval> to_approve(const Declared& now);
// Covers everything except `by`, `time` and `canaries`, that is, what the operator was shown.
std::string digest_of(const Approval& approval);
// The value of View::target.
std::string target_of(const Approval& now, const Policy& policy);
// Lines for the operator: what the approval allows, and what is never done.
std::vector<std::string> effects_of(const Approval& approval);

// "" if everything that is declared now is covered.
std::string not_covered(const Approval& approved, const Approval& now);

struct BatchNodes {
  std::set<std::string> nodes, prefetch;
};
// Returns what in this plan the approval does not cover, of rule `approval`; empty if it covers everything.
// It covers the batch's nodes with the images of `now`, the other slots of the next batch's nodes, and
// steps by which storage servers allow nodes to mount. It never covers a destroyed disk.
std::vector<Refusal> beyond(const Approval& now, const Plan& plan, const BatchNodes& batch);

MUSTER_RECORD(ApprovedImage, digest, built_from)
MUSTER_RECORD(Approval, by, time, spec_revision, spec_digest, roles, images, rebuilt_images, sparse(canaries),
              sparse(rebuild))
Json to_json(const Approval& approval);
Result<Approval> approval_from_json(const Json& json);  // Code::invalid if malformed

}  // namespace muster::rollout
