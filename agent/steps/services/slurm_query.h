// What slurmctld has about nodes, through Slurm's programs. Code::not_found: slurmctld answers and does not
// list the node, or the program is not installed; any other error may pass when slurmctld has started.
// Thread safety: stateless functions, which block for at most half a minute.
#pragma once

#include <map>
#include <string>

#include "agent/core/step.h"
#include "base/slurm_state.h"

namespace muster::steps {

struct SlurmNode : slurm::NodeLine {
  slurm::State state;  // that of its word

  slurm::Drain drain() const { return slurm::drain_of(reason); }
};

Result<std::map<std::string, SlurmNode>> slurm_nodes(StepContext& context);
Result<SlurmNode> slurm_node(StepContext& context, const std::string& name);
// True if others keep it out (slurm::is_decision()): a person, the health check, or `muster drain`.
bool is_left(const SlurmNode& node);
// "node02 is drained by ann since 2026-11-29T09:48:25: bad fan"
std::string in_words(const SlurmNode& node);

// The ids of jobs with processes on the node, separated by commas; "" if there are none. A node's state does
// not always show them: with suspended jobs only it is idle or drained, and after a restart of slurmctld a
// node that is being drained is shown as drained until it has registered.
Result<std::string> jobs_on(StepContext& context, const std::string& node);

// When the slurmd that last registered the node was started, in seconds since 1970; 0: none has since
// slurmctld started.
Result<int64_t> registered_start(StepContext& context, const std::string& node);

}  // namespace muster::steps
