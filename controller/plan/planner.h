// Planner: spec + playbooks + what was seen of the nodes -> an immutable Plan, or refusals. Pure: no clock,
// no I/O, no logger.
//
// Two plans in one bring-up: nodes whose hardware was never seen get a `discover` plan first (netboot +
// inventory, read-only); when it ran, the same request gives the `install` plan. Kinds it makes:
//   discover  some node of the request was never seen: netboot + inventory of those nodes only
//   install   everything: [netboot] -> image -> boot_disk -> configure -> cluster stages -> acceptance
//   apply     all nodes of the request already run their image: configure -> cluster stages -> acceptance
//   reimage   as install for the named nodes; data disks are kept. In place if possible, else through the RAM
//             system, with a note of the reason (in_place.h)
//   rollback  the other root slot of the named nodes is booted in place (in_place.h), then as apply
//   admit     as install for the named nodes; no other node is touched
//   adopt     as apply for the named adopted nodes, whose agents need not be there yet
//   accept    acceptance only
//   drain     the playbooks' steps of phase drain, playbooks in reverse order, one named node after the other
//   undrain   their steps of phase undrain, in order
//   none      nothing to do (Plan::empty())
// A node that a discovery failed to find (quarantined, no facts) does not block the others: it is left out
// with a note as long as they have something to do, and discovered again when they have not. A node that an
// operator quarantined is left out too; naming it is refused (node-held). So is a node whose system is on
// trial and not committed (on-trial), in plans of every kind. A drained one is left out unless it is named:
// undrain, reimage or `up --limit` bring it back. Plan::left_out lists all of these. An adopted node
// (NodeSpec::adopt) keeps its operating system: no plan netboots it, writes an image to it or switches it
// off. One whose agent does not answer is left out, and naming it is refused (not-running); reimage and admit
// refuse it (adopted-node). A shared storage whose data exists is never created again: the leader's step is
// given that fact, and if it is certain that the leader has no metadata, a plan that does not name it is
// refused (storage-leader). A node is unchanged when it is online, accepted, and its image and configuration
// digests are those of this plan. An accepted or degraded one that runs a different build of its image keeps
// it until an operator replaces it (older_image.h), and is configured as declared. The machine that the
// controller runs on can be an adopted node. As anything else it is refused (own-machine), and so is
// formatting a disk on it that is not blank. A machine without the declared hardware is not installed: it is
// left out (hardware-unlike), and refused when it is named, unless it is forced.
//
// Order: all node-phase steps of a node's playbooks (and image-phase steps that are not baked into its image)
// are one `steps` action. Then cluster stages, in playbook order: all nodes finish a stage before any starts
// the next (soft dependencies: a quarantined node blocks no other; hard on the leader when the stage has `on:
// leader` steps). Then acceptance, stages alike.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "controller/plan/plan.h"
#include "controller/plan/planner_input.h"

namespace muster {

struct PlanOutcome {
  Plan plan;  // undefined if there are refusals
  std::vector<Refusal> refusals;
};

// How a node would get its image, were it re-imaged now.
struct NodeWay {
  enum class By { in_place, through_ram, none };
  std::string node;
  By by = By::none;
  std::string why;  // why not in place; for `none`: the obstacle
};
// For the nodes that the request, a re-image, names, in their order. Each is judged alone: the storage's
// limits are not considered. Errors as from make_plan().
Result<std::vector<NodeWay>> ways_of(const PlannerInput& input);

// An Error means wrong input (a playbook that does not render, an unknown node in --limit), all of it
// reported at once.
Result<PlanOutcome> make_plan(const PlannerInput& input);

}  // namespace muster
