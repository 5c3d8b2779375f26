// A node's network services, firewall, packages and kernel parameters from the spec, as names for playbooks
// (docs/playbook-context.md). Pure functions, no I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "controller/spec/spec.h"

namespace muster {

// {network, time_zone, firewall, packages, sysctls}.
Json services_of(const Spec& spec, const NodeSpec& node);

// Replaces values in a sysctl step's `params` by those that the spec declares: two steps with different
// values for one kernel parameter would otherwise overwrite each other in every run.
void prefer_declared(const Json& sysctls, Json& params);

// Chooses a port that one node must find closed on another node: playbook `firewall` probes it to check that
// the other node's firewall is up.
// The probe shows nothing from an address that the rules allow on every port, since "connection refused" is
// then the normal answer: the controller's own machine, and nodes whose address is in `network.storage` or in
// a rule of the spec's `firewall`.
// Returns a privileged TCP port on which no node accepts packets from this node's address; empty if there is
// none. A rule for some roles counts for all nodes: the probed node is chosen when the order is sent. The
// ports that the playbook itself opens are repeated in network_services.cc; a test compares the two.
std::optional<uint16_t> closed_port(const Spec& spec, const NodeSpec& node,
                                    const std::string& controller_address);

}  // namespace muster
