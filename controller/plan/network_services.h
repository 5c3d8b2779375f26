// A node's network services, firewall, packages and kernel parameters from the spec, as names for playbooks
// (docs/playbook-context.md). Pure functions, no I/O.
#pragma once

#include "base/json.h"
#include "controller/spec/spec.h"

namespace muster {

// Returns {network, time_zone, firewall, packages, sysctls}.
Json services_of(const Spec& spec, const NodeSpec& node);

// Replaces values in a sysctl step's `params` by those that the spec declares: two steps with different
// values for one kernel parameter would otherwise overwrite each other in every run.
void prefer_declared(const Json& sysctls, Json& params);

}  // namespace muster
