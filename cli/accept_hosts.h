// `muster accept --hosts`: measures running hosts without changing them, in a run inside this process.
// Thread: the main thread.
#pragma once

#include <string>
#include <vector>

#include "cli/cli_context.h"
#include "controller/hosts/session.h"

namespace muster::cli {

struct AcceptHostsFlags {
  std::string hosts;                      // a file, or a list
  std::string profile, name;              // "": the default
  std::string via, ssh_config;            // see controller/hosts/ssh_command.h
  std::string libs;                       // folder on the hosts with NCCL and its dependencies
  std::string rail_rate, port_rate;       // "200 Gb/s": what RDMA ports, and those of TCP, are held to
  std::vector<std::string> gpu_programs;  // files or folders with muster-accept-gpu, on this machine
  std::string report;                     // folder; "": no report
  bool user = false, beside_jobs = false, drift_only = false;
};

// The folder of this user's history and signing key: "$XDG_STATE_HOME/muster/accept", else
// "~/.local/state/muster/accept". invalid: neither XDG_STATE_HOME nor HOME is set.
Result<std::string> accept_state_folder();

// Returns the options of the session. invalid: the list of hosts has errors; the message has one per line.
Result<SessionOptions> session_options(const AcceptHostsFlags& flags);

// {"title", "verdict", "exit", "hosts": [{"name", "verdict", "reason", "how"?}], "report"?, "drift",
// "not_measured", ...}
Json outcome_json(const SessionOutcome& outcome, int exit);
int exit_of_outcome(const SessionOutcome& outcome, bool drift_only);

void accept_hosts(Context& context, const AcceptHostsFlags& flags);

}  // namespace muster::cli
