// What the spec says of the network around a node, its firewall, packages and kernel parameters, as the names
// that a playbook may use (docs/playbook-context.md). Pure.
#pragma once

#include "base/json.h"
#include "controller/spec/spec.h"

namespace muster {

// {network, time_zone, firewall, packages, sysctls}
Json services_of(const Spec& spec, const NodeSpec& node);

// A parameter that the spec declares has that value in every step of module sysctl: two steps that want two
// values would undo each other for ever.
void prefer_declared(const Json& sysctls, Json& params);

}  // namespace muster
