// Changes that could lock the controller out are made in two phases: apply, prove that the controller is
// still reachable, confirm. Without the confirmation a systemd timer of its own rolls the change back,
// even if the agent is gone.
//
//   arm()                waits for the end of an earlier rollback, copies the files about to change to
//                        /var/lib/muster/rollback/NAME.json and starts the timer
//   confirm()            stops the timer and removes the copies
//   roll_back()          run by the timer (`muster-agent rollback NAME`): restores the copies, then runs the
//                        after-commands
//   roll_back_orphans()  run by the agent at its start, before it needs a network: the changed files survive
//                        a boot, the timer does not
//
// A crash or a loss of power between arm() and confirm() ends in a rollback: the step has failed, and is
// simply applied again.
// Thread: blocking.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/step.h"

namespace muster::steps {

struct TwoPhase {
  std::string name;                             // "ufw", "sshd"
  std::vector<std::string> files;               // restored; one that does not exist now is removed then
  std::vector<std::vector<std::string>> after;  // programs to run after the files are restored
  int64_t seconds = 120;
};
Status arm(StepContext& context, const TwoPhase& change);
// failed: the change was rolled back meanwhile.
Status confirm(StepContext& context, const std::string& name);
Status roll_back(Files& files, Process& process, const std::string& name);

// Rolls back every change that can no longer be confirmed and that no timer will roll back. One whose timer
// is pending or running is left to it.
struct RolledBack {
  std::string name;
  Status result;
};
std::vector<RolledBack> roll_back_orphans(Files& files, Process& process);

// A change that was neither confirmed nor rolled back.
bool is_armed(const Files& files, const std::string& name);
// arm, `change`, confirm; rolls the change back at once on failure, unless its timer is doing so already.
Status in_two_phases(StepContext& context, const TwoPhase& phases, const std::function<Status()>& change);

// Opens a new connection to "address:port" or "https://address:port". Ok when it could be made within
// `deadline`.
Status reach(const std::string& controller, DurationMs deadline);

}  // namespace muster::steps
