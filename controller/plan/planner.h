// Planner: makes an immutable Plan, or refusals, from the spec, the playbooks and what was seen of the nodes.
// Pure functions: no clock, no I/O, no logging.
//
// A bring-up may take two plans: nodes whose hardware was never seen first get a `discover` plan (netboot +
// inventory, read-only); after its run, the same request gives the `install` plan. Kinds of plans:
//   discover  some nodes of the request were never seen: netboot + inventory of those nodes only
//   install   everything: [netboot] -> image -> boot_disk -> configure -> cluster stages -> acceptance
//   apply     all nodes of the request already run their image: configure -> cluster stages -> acceptance
//   reimage   as install for the named nodes; data disks are kept. In place if possible, else through the RAM
//             system, with a note of the reason (in_place.h)
//   rollback  the other root slot of the named nodes is booted in place (in_place.h), then as apply
//   admit     as install for the named nodes; no other node is touched
//   adopt     as apply for the named adopted nodes, whose agents need not be running yet
//   accept    acceptance only
//   drain     the playbooks' steps of phase drain, playbooks in reverse order, one named node after the other
//   undrain   their steps of phase undrain, in order
//   none      nothing to do (Plan::empty())
// A node that a discovery failed to find (quarantined, no facts) does not block the others: it is left out
// with a note as long as they have something to do, and discovered again when they do not. A node that an
// operator quarantined is left out too, and naming it is refused (node-held). The same holds, in plans of
// every kind, for a node whose system is on trial and not committed (on-trial). A drained node is left out
// unless it is named: undrain, reimage or `up --limit` bring it back. Plan::left_out lists all of these. An
// adopted node (NodeSpec::adopt) keeps its operating system: no plan netboots it, writes an image to it or
// switches it off. If its agent does not respond, it is left out, and naming it is refused (not-running);
// reimage and admit refuse it (adopted-node). Shared storage with existing data is never created again: the
// leader's step gets a parameter that forbids it, and if the leader certainly has no metadata, a plan that
// does not name it is refused (storage-leader). A node is unchanged if it is online and accepted, and its
// image and configuration digests are those of this plan. An accepted or degraded node with a different build
// of its image keeps it until an operator replaces it (note_older_builds()), and is configured as declared.
// The machine that the controller runs on can be an adopted node; anything else is refused (own-machine),
// and so is formatting a disk on it that is not blank. A machine without the declared hardware is not
// installed: it is left out (hardware-unlike), or refused if it is named, unless it is forced.
//
// Order: all node-phase steps of a node's playbooks, and image-phase steps that are not baked into its image,
// are one `steps` action. Then the cluster stages, in playbook order: all nodes finish a stage before any
// node starts the next (soft dependencies: a quarantined node does not block others; hard dependencies on the
// leader if the stage has `on: leader` steps). Then acceptance, in stages as well.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "controller/plan/plan.h"
#include "controller/plan/planner_input.h"

namespace muster {

struct PlanOutcome {
  Plan plan;  // undefined if there are refusals
  std::vector<Refusal> refusals;
  // Of plans for `up`: why each node takes part, as recorded where it was decided: "it was never seen".
  std::map<std::string, std::string> why = {};
};

struct NodeWay {
  enum class By { in_place, through_ram, none };
  std::string node;
  By by = By::none;
  std::string why;  // why not in place; for `none`: the obstacle
};
// Returns one entry per node named in the request, which must be a re-image, in the same order. Each node is
// judged alone: the limits of storage sections are not considered. Errors as from make_plan().
Result<std::vector<NodeWay>> ways_of(const PlannerInput& input);

// Makes the plan. An Error means invalid input (a playbook that cannot be rendered, an unknown node in
// --limit), and reports all problems at once.
Result<PlanOutcome> make_plan(const PlannerInput& input);

}  // namespace muster
