// The passes of a plan, in the order in which planner.cc and the passes themselves call them. Each reads and
// changes the Planning that it is given. No I/O.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/plan/planning.h"

namespace muster {

// Makes a draft for each node of the request that may be planned. The others are refused if the request names
// them, otherwise left out with a note.
void choose_nodes(Planning& p);

// Writes a drain or undrain plan. These plans never format a disk, so disk contents are not examined. Nodes
// are drained one after the other, so that data moved off the first is not sent to the second.
void write_drain(Planning& p);

// Makes a plan that only wakes nodes whose agents are silent, and returns true, if there are any. Everything
// else is planned once they report. A node that did not report in such a run is left out until a request
// names it.
bool wake(Planning& p);
// Makes a discover plan, and returns true, if some nodes were never seen. Nodes that a discovery already
// failed to find, or that an operator has to switch on, do not delay the others: they are discovered when
// there is nothing else to do.
bool discover(Planning& p);
void write_discovery(Planning& p, std::vector<Draft> unseen);

// Returns the playbook; null if it does not exist, which `complain` reports as a problem, once.
const Playbook* find_playbook(Planning& p, const std::string& name, bool complain);
// True if agents of earlier versions lack the step's module: they would reject the whole order. Such an agent
// does not report its slot (BootFacts::running) either.
bool has_new_module(const PlannedStep& step);
// Returns the node's steps of the phase, from the playbooks of its role; with `back`, last playbook first.
std::vector<PlannedStep> steps_of_phase(Planning& p, const Draft& d, const std::string& phase, bool back);
// Renders the node's steps twice: as sent, and, for the digest, without the disks' current content.
void render(Planning& p, Draft& d, const Digest& image_digest);

// "10.20.0.11/24".
std::string installed_address(const Spec& spec, const NodeSpec& node);
// Returns the order. If the node has no image or OS disk (already refused), adds a problem and returns none.
std::optional<wire::ImageJob> image_order(Planning& p, const Draft& d);

// Nodes in service whose image has been rebuilt since keep the older build until an operator replaces it
// (`muster reimage`, `muster up --reimage`), because a re-image ends their jobs.
// True if the node is accepted or degraded and runs a different build of its declared image. An image without
// a recorded name counts as a build of the declared one; an image with a different name does not.
bool runs_older_build(const Planning& p, const Draft& d);
// Adds notes that list these nodes and the commands that replace their images.
void note_older_builds(Planning& p);

// Decides for each node whether it is imaged, which disks it uses and whether anything changes, and renders
// its steps. All nodes must have been seen.
void prepare_all(Planning& p);
// Leaves out machines whose hardware differs from the declaration; the others continue without them.
void drop_unlike(Planning& p);
// Refuses disks that several nodes select. Nodes outside the plan are included with the disks last seen
// there, which may be in use.
void refuse_shared_disks(Planning& p);
// Leaves out nodes on which nothing would change.
void drop_unchanged(Planning& p);

// Refuses (storage-needed) to take nodes out of service for a re-image or a rollback if a storage section
// would stop: its only server or master, or more members at once than it can do without, counting those
// already away. Forced nodes get a note instead. Also adds a note if Slurm's controller is taken out of
// service: running jobs continue, but no job starts in the meantime.
void refuse_needed(Planning& p);
// Adds servers that the plan does not include yet. Shared file systems are exported to declared nodes one by
// one, so a new node needs a step on the server. Only that step is added, and only if the declaration changed
// since the server was configured.
void add_servers(Planning& p);
// Refuses the plan if the leader certainly has no metadata for existing data: an empty master or monitor in
// place of a lost one would make all files inaccessible. A plan that names the leader is allowed, because the
// agent never creates metadata either: that is how a leader is reinstalled before its metadata is restored.
void check_storage_leaders(Planning& p);

// A node that is re-imaged or rolled back in place: its other root slot is booted once, and becomes the
// default only after the node was accepted in it. Otherwise the node goes back to the slot that it runs now.
//
// Such a node's actions, in order: write (re-image only), pause, boot; the actions that other nodes of the
// plan have as well; commit, resume. Its `when_failed` actions: return, resume-old, look-old.
//
// Decides, for a node whose disks are chosen, whether it goes in place (Draft::slot) or through the RAM
// system, with a note of the reason. Refuses a rollback that is not possible (rule rollback), and a trial
// that is shorter than the node's last configuration and acceptance took (trial-short). Also chooses the
// steps of phases `pause` and `resume`; a node forced by name has none.
void choose_way(Planning& p, Draft& d);

// Writes the actions that precede the reboot: writing the other slot, then the steps of phase `pause`. A node
// that goes through the RAM system gets those steps, too.
void write_slot_and_pause(Planning& p, Draft& d);
// Writes the prefetches for nodes of a rollout's next batch: their other slot is written when this plan's
// nodes leave their systems. Those are in Plan::serving: their state stays the same, even if the write fails.
void write_prefetches(Planning& p);
// Writes the trial boots, after all earlier actions of all nodes of the plan. Hours may lie between a node's
// pause and its boot: the order carries the steps of the pause as preconditions. The trial's time limit
// starts with the boot, so no later action may wait for jobs; a hung node is waited for no longer than two
// boots.
void write_trials(Planning& p);
// Writes the actions after acceptance: commit and resume, and those that return a failed node.
void write_ends(Planning& p);

// Returns the file names of the measuring programs that the step runs, on any of the nodes that take part in
// it. A host that muster did not image gets them only with an order of checks
// (agent/work/carried_programs.h).
std::set<std::string> programs_of(const wire::Step& step);
// Records in each host's draft (`started_for`) the programs that other nodes' loads start on it.
void find_started_programs(Planning& p);
// Adds "programs" and "base_url" to the order with these steps; `first`: it is the host's first order. A
// program that the controller does not have is omitted, and the step reports it as missing. Does nothing for
// nodes that muster imaged.
void name_programs(const Planning& p, const Draft& d, const std::vector<PlannedStep>& steps, bool first,
                   ActionParams& params);

struct StageOf {
  int number = 1;
  std::string name, phase, title;  // of the stage's actions
  ActionKind kind = ActionKind::steps;
  // A node's share of this stage is taken from these steps; null: the node has none.
  std::function<const std::vector<PlannedStep>*(const Draft&)> steps_of;
};

// Writes one action per node that has steps in this stage, after all earlier actions of all nodes.
void write_stage(Planning& p, const StageOf& stage);
// Writes the cluster stages of all playbooks, those of each playbook in order of number.
void write_stages(Planning& p);

// Loads that run across all measured nodes (`among: group`, module accept_group): chooses the node that leads
// and those that serve. Before this pass every node of such a step has the step, whichever nodes are in the
// plan, so that its configuration digest does not depend on them. This pass leaves the step only on the first
// of its `hosts` in the plan, with the planned hosts only; the other hosts serve (accept_group_serve) in the
// same stage, as long as that node may need them; the remaining nodes get no step. A step with fewer than two
// planned hosts is dropped.
void assign_groups(Planning& p);

// Appends the measuring actions to the plan, after all actions that the drafts have so far.
void write_acceptance(Planning& p);

// Writes the actions of all drafts. prepare_all() must have run.
void write_actions(Planning& p);

}  // namespace muster
