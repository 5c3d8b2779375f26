// muster node add NODES --adopt HOSTS: running Linux hosts become nodes without being re-imaged.
//
// From here, where the operator's SSH keys are: the host keys are pinned, the agent is sent to all hosts at
// once and looks at them, the steps of one plan for all are checked there without writing anything, what
// would change is shown and has to be approved, then each agent settles, and the plan runs. The controller
// never gets a key; it makes the plan and the one-time tokens (controller/api/adopt_api.cc).
#pragma once

#include <string>
#include <vector>

#include "cli/carry_out.h"

namespace muster::cli {

struct Adopting {
  std::vector<std::string> nodes, hosts;  // as many of both; hosts: "HOST" or "HOST:PORT"
  std::string like;                       // for nodes that are not in the spec yet
  std::vector<std::string> addresses;     // likewise; none, or one for each
  std::string user, key;                  // key: a file; empty: the SSH agent
  std::string host_key;                   // fingerprint or a file; empty: shown and asked about
  Approval approval;
  std::string report_dir;
};
void adopt(Context& context, const Adopting& what);

// denied: one of the plan's steps would leave `user` of that host without any of these public keys (base64).
// Its account is in the spec then, and the spec says the complete set. An account that the spec does not
// declare is left as it is.
Status keeps_access(const std::string& user, const std::vector<std::string>& keys, const Json& steps);

// denied: a step lets fewer keys be tried for each login (sshd's MaxAuthTries) than it takes to get to one
// that `user` is let in with. `keys`: those of the SSH agent in its order; `own`: the one that lets it in
// now.
Status keeps_tries(const std::string& user, const std::vector<std::string>& keys, const std::string& own,
                   const Json& steps);

// What the checks on the host said (agent/preview.h), for people.
std::string render_preview(const Json& steps);

}  // namespace muster::cli
