// Changes that could lock the controller out are made in two phases: apply the change, prove that the
// controller is still reachable, confirm. Without the confirmation a separate systemd timer rolls the change
// back, even if the agent no longer runs.
//
//   arm()                waits for the end of an earlier rollback, saves the files that will change to
//                        /var/lib/muster/rollback/NAME.json and starts the timer
//   confirm()            stops the timer and removes the copies
//   roll_back()          run by the timer (`muster-agent rollback NAME`): restores the copies, then runs the
//                        after-commands
//   roll_back_orphans()  run by the agent at its start, before it needs a network: the changed files survive
//                        a reboot, but the timer does not
//
// A crash or a loss of power between arm() and confirm() ends in a rollback: the step has failed and can be
// applied again. Thread safety: stateless functions, which block.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/core/step.h"

namespace muster::steps {

struct TwoPhase {
  std::string name;                             // "ufw", "sshd"
  std::vector<std::string> files;               // to restore, or to remove if they do not exist now
  std::vector<std::vector<std::string>> after;  // programs to run after the files are restored
  int64_t seconds = 120;                        // until the timer rolls the change back
};
Status arm(StepContext& context, const TwoPhase& change);
// failed: the timer has rolled the change back, or is doing so.
Status confirm(StepContext& context, const std::string& name);
Status roll_back(Files& files, Process& process, const std::string& name);

// Rolls back every change that was not confirmed and that no timer will roll back. A change whose timer is
// pending or whose rollback is running is not touched.
struct RolledBack {
  std::string name;
  Status result;
};
std::vector<RolledBack> roll_back_orphans(Files& files, Process& process);

// True for a change that was neither confirmed nor rolled back.
bool is_armed(const Files& files, const std::string& name);
// Runs arm(), `change` and confirm(). A failure rolls the change back at once, unless its timer already does.
Status in_two_phases(StepContext& context, const TwoPhase& phases, const std::function<Status()>& change);

// Opens a new TCP connection to "address:port" or "https://address:port"; retries for up to `deadline`.
Status reach(const std::string& controller, DurationMs deadline);

}  // namespace muster::steps
