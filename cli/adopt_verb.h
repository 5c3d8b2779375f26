// muster node add NODES --adopt HOSTS: running Linux hosts become nodes without being re-imaged.
//
// Runs where the operator's SSH keys are: the host keys are pinned, the agent is sent to all hosts at once
// and inspects them, the steps of one plan for all are checked there without writing anything, the changes
// are shown and must be approved, then each agent is installed, and the plan runs. The controller never gets
// a key; it makes the plan and the one-time tokens (controller/api/adopt_api.cc).
#pragma once

#include <string>
#include <vector>

#include "cli/carry_out.h"

namespace muster::cli {

struct Adopting {
  std::vector<std::string> nodes, hosts;  // as many hosts as nodes: "HOST" or "HOST:PORT"
  std::string like;                       // for nodes that are not in the spec yet
  std::vector<std::string> addresses;     // on the provisioning network: none, or one per node
  std::string user, key;                  // key: a file; empty: the keys of the SSH agent
  std::string host_key;                   // fingerprint or a file; empty: the operator confirms the key
  Approval approval;
  std::string report_dir;
};
void adopt(Context& context, const Adopting& what);

// denied: one of the plan's steps would remove all of these public keys (base64) from `user` on that host.
// This happens only if the spec declares that account, with its complete set of keys. An account that the
// spec does not declare is not changed.
Status keeps_access(const std::string& user, const std::vector<std::string>& keys, const Json& steps);

// denied: a step sets sshd's MaxAuthTries too low for the SSH agent to offer a key that `user` can log in
// with. `keys`: the keys in the SSH agent, in its order; `own`: the key of the current login.
Status keeps_tries(const std::string& user, const std::vector<std::string>& keys, const std::string& own,
                   const Json& steps);

// Returns the results of the checks on the host (agent/joining/adopting.h) as text for operators.
std::string render_preview(const Json& steps);

}  // namespace muster::cli
