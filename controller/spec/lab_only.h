// What a spec may contain only on a lab's controller: the section `lab:` and the lab's profiles. Their limits
// are for virtual machines, and any real server reaches them even with half of its parts broken, so a
// controller of real servers would accept everything. A lab's controller is one that was started with --lab,
// as `muster lab up` does (DaemonOptions::lab). Pure functions, no I/O.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "controller/spec/spec.h"

namespace muster {

// True for a profile for virtual machines, shipped or the spec's own: `lab`, or a name with prefix `lab-`.
bool is_lab_profile(const std::string& name);
// True if hardware accepted with this profile is simulated, and must be marked as such everywhere.
bool is_simulated(const Spec& spec, const std::string& profile);

// Returns what a controller that is not a lab's must reject, with its place in the spec; empty if nothing.
// `profile`: the acceptance profile to be used, from the spec or a request.
std::vector<SpecError> lab_only(const Spec& spec, const std::string& profile);
inline std::vector<SpecError> lab_only(const Spec& spec) { return lab_only(spec, spec.acceptance_profile); }
// Checks a stored revision in the same way: invalid with all findings, one per line; ok if there are none.
Status refuse_lab_only(const Spec& spec, int64_t revision, const std::string& profile);

}  // namespace muster
