// `muster accept --hosts`: running hosts are measured as they are, by a run in this process. Thread: the main
// thread.
#pragma once

#include <string>

#include "cli/cli_context.h"
#include "controller/hosts/session.h"

namespace muster::cli {

struct AcceptHostsFlags {
  std::string hosts;            // a file, or a list
  std::string profile, name;    // "": as the list of hosts is called
  std::string via, ssh_config;  // as controller/hosts/ssh_command.h takes them
  std::string libs;             // folder on the hosts with NCCL and what it needs
  std::string report;           // folder; "": none is written
  bool user = false, beside_jobs = false, drift_only = false;
};

// Where history and signing key of this user are kept: "$XDG_STATE_HOME/muster/accept", else
// "~/.local/state/muster/accept". invalid: neither names a folder.
Result<std::string> accept_state_folder();

// What the session is made from. invalid, with all that is wrong in the list of hosts, one a line.
Result<SessionOptions> session_options(const AcceptHostsFlags& flags);

// {"title", "verdict", "exit", "hosts": [{"name", "verdict", "reason", "how"?}], "report"?, "drift", ...}
Json outcome_json(const SessionOutcome& outcome, int exit);
int exit_of_outcome(const SessionOutcome& outcome, bool drift_only);

// Runs it to its end, shows it, and sets the exit code.
void accept_hosts(Context& context, const AcceptHostsFlags& flags);

}  // namespace muster::cli
