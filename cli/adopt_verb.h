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
  std::vector<std::string> addresses;     // likewise; none, or one for each
  std::string user, key;                  // key: a file; empty: the SSH agent
  std::string host_key;                   // fingerprint or a file; empty: shown for confirmation
  Approval approval;
  std::string report_dir;
};
void adopt(Context& context, const Adopting& what);

// denied: one of the plan's steps would leave `user` of that host without any of these public keys (base64).
// Its account is in the spec then, with its complete set of keys. An account that the spec does not declare
// is not changed.
Status keeps_access(const std::string& user, const std::vector<std::string>& keys, const Json& steps);

// denied: a step allows fewer keys per login (sshd's MaxAuthTries) than needed to reach one that `user` can
// log in with. `keys`: those of the SSH agent in its order; `own`: that of the current login.
Status keeps_tries(const std::string& user, const std::vector<std::string>& keys, const std::string& own,
                   const Json& steps);

// Results of the checks on the host (agent/preview.h), for people.
std::string render_preview(const Json& steps);

}  // namespace muster::cli
