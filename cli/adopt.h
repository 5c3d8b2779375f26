// muster node add NAME --adopt HOST: a running Linux host becomes a node without being re-imaged.
//
// From here, where the operator's SSH keys are: the host key is pinned, the host is looked at and the plan's steps are checked on it
// without writing anything, what would change is shown and has to be approved, then the agent is uploaded and the plan runs.
// The controller never gets a key; it makes the plan and the one-time token (controller/api/adopt.cc).
#pragma once

#include <string>

#include "cli/bringup.h"

namespace muster::cli {

struct Adopting {
  std::string node, host;      // host: "HOST" or "HOST:PORT"
  std::string like, address;   // for a node that is not in the spec yet
  std::string user, key;       // key: a file; empty: the SSH agent
  std::string host_key;        // fingerprint or a file; empty: shown and asked about
  Approval approval;
  std::string report_dir;
};
void adopt(Context& context, const Adopting& what);

// What the checks on the host said (agent/preview.h), for people.
std::string render_preview(const Json& steps);

}  // namespace muster::cli
