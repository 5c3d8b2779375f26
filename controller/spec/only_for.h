// The distribution that a playbook is for, where it is not for all; and where a spec names such a playbook
// for systems of another one. Pure functions, no I/O.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "controller/spec/spec.h"

namespace muster {

struct OnlyFor {
  std::string distribution;  // Distribution::id; "": all
  std::string elsewhere;     // what to do on others: "use gpu-ubuntu"; may be empty
};

// Why the playbook is refused on a system of this distribution: "is for Debian only; on Ubuntu use
// gpu-ubuntu". "" if it is not, or if `distribution` is null, which means unknown.
std::string why_not_on(const OnlyFor& only_for, const Distribution* distribution);

// An element of `images.NAME.bake` or of `roles.NAME.playbooks`.
struct RefusedPlaybook {
  bool baked = false;
  std::string name;  // of the image or role
  size_t index = 0;
  std::string why;  // a sentence that begins with the playbook
};
// `only_for`: of the playbooks that have it, by name. Each element once, for the first node of its role whose
// image is of another distribution. Adopted nodes have no image: the planner decides about them.
std::vector<RefusedPlaybook> refused_playbooks(const Spec& spec,
                                               const std::map<std::string, OnlyFor>& only_for);

}  // namespace muster
