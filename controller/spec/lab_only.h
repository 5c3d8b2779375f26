// What a spec may contain only on a lab's controller. The section `lab:` and the lab's profiles hold virtual
// machines to limits that any server reaches with half of its parts broken: on a controller of real servers
// they would accept everything. A controller is a lab's when it is started with --lab, as `muster lab up`
// does (DaemonOptions::lab). Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "controller/spec/spec.h"

namespace muster {

// A profile for virtual machines, shipped or a spec's own: `lab`, or a name that begins with `lab-`.
bool is_lab_profile(const std::string& name);
// Whether what is accepted by this profile is simulated hardware, and says so everywhere.
bool is_simulated(const Spec& spec, const std::string& profile);

// What a controller that is not a lab's rejects, with its place in the spec; empty: nothing. `profile`: the
// acceptance profile to be used, the spec's or a request's.
std::vector<SpecError> lab_only(const Spec& spec, const std::string& profile);
inline std::vector<SpecError> lab_only(const Spec& spec) { return lab_only(spec, spec.acceptance_profile); }
// The same for a stored revision: invalid with all findings, one per line; ok if there are none.
Status refuse_lab_only(const Spec& spec, int64_t revision, const std::string& profile);

}  // namespace muster
