// Adoption, on the node: installs the agent on a running Linux host that muster did not install.
//
// The agent joins with {url, pin, token, node} and becomes a systemd service that survives reboots (called by
// agent/joining/adopting.h). Nothing else on the host is changed. Rejected before the token is used: a host
// that already belongs to a different controller or is a different node, and a host without systemd. Thread
// safety: stateless functions.
#pragma once

#include <string>

#include "agent/core/identity.h"
#include "base/result.h"
#include "sys/os.h"

namespace muster {

// Parses the parameters of a join. invalid: not JSON, or an unknown or missing key.
Result<BootParameters> join_parameters(const std::string& json);

// Returns the folder of this host's identity, whether or not it has one yet.
std::string identity_folder(const Files& files);

// Returns conflict if the identity in `folder` is of a different controller (by its CA pin) or node.
Status may_join(const Files& files, const std::string& folder, const BootParameters& boot);

// Returns invalid if this host does not run systemd, which must start the agent.
Status may_serve(const Files& files);
// Writes the unit if it differs (muster's images have one), enables and restarts it: the identity may be new.
Status start_service(const Files& files, Process& process, const std::string& folder);

}  // namespace muster
