// The spec's network services, firewall, packages and kernel parameters of a node, as names for playbooks
// (docs/playbook-context.md). Pure.
#pragma once

#include "base/json.h"
#include "controller/spec/spec.h"

namespace muster {

// {network, time_zone, firewall, packages, sysctls}
Json services_of(const Spec& spec, const NodeSpec& node);

// A parameter that the spec declares has that value in every step of module sysctl: two steps with different
// values would undo each other forever.
void prefer_declared(const Json& sysctls, Json& params);

}  // namespace muster
