// Planner: spec + playbooks + what was seen of the nodes -> an immutable Plan, or refusals. Pure: no clock,
// no I/O, no logger.
//
// Two plans in one bring-up: nodes whose hardware was never seen get a `discover` plan first (netboot +
// inventory, read-only); when it ran, the same request gives the `install` plan. Kinds it makes:
//   discover  some node in question was never seen: netboot + inventory of those nodes only
//   install   everything: [netboot] -> image -> boot_disk -> configure -> cluster stages -> acceptance
//   apply     all nodes in question run the wanted image already: configure -> cluster stages -> acceptance
//   reimage   as install for the named nodes; data disks are kept. In place where that can be, else through
//             the RAM system, with a note that says which and why (in_place.h)
//   rollback  the other root slot of the named nodes is booted in place (in_place.h), then as apply
//   admit     as install for the named nodes; no other node is touched
//   adopt     as apply for the named adopted nodes, whose agents need not be there yet
//   accept    acceptance only
//   drain     the playbooks' steps of phase drain, playbooks in reverse order, one named node after the other
//   undrain   their steps of phase undrain, in order
//   none      nothing to do (Plan::empty())
// A node that a discovery failed to find (quarantined, no facts) does not hold the others: it is left out
// with a note as long as they have something to do, and looked for again when they have not.
// A node that an operator quarantined is left out too; naming it is refused (node-held). So is one that runs
// a system on trial, which nothing has committed (on-trial), by plans of every kind. A drained one is
// left out unless it is named: undrain, reimage or `up --limit` bring it back. Plan::left_out lists all of
// these. An adopted node (NodeSpec::adopt) keeps its operating system: no plan netboots it, writes an image
// to it or switches it off. One whose agent does not answer is left out, and naming it is refused
// (not-running); reimage and admit refuse it (adopted-node). A shared storage whose data is there is never
// created again: the leader's step gets that, and where it is certain that the leader has no metadata, a plan
// that does not name it is refused (storage-leader). A node is unchanged when it is online, accepted, and
// its image and configuration digests are those of this plan. An accepted or degraded one that runs another
// build of its image keeps that until it is said otherwise (older_image.h), and is configured as declared.
// The machine that the controller runs on can be an adopted node. As anything else it is refused
// (own-machine), and so is, on it, the formatting of a disk that is not blank. A machine that has not the
// hardware declared is not installed: it is left out (hardware-unlike), and refused when it is named, unless
// it is forced.
//
// Order: all node-phase steps of a node's playbooks (and image-phase steps that are not baked into its
// image) are one `steps` action. Then cluster stages, in playbook order: all nodes finish a stage before any
// starts the next (soft dependencies: a quarantined node holds no other; hard on the leader when the stage
// has `on: leader` steps). Then acceptance, stages alike.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "controller/plan/plan.h"
#include "controller/plan/planner_input.h"

namespace muster {

struct PlanOutcome {
  Plan plan;  // meaningless when there are refusals
  std::vector<Refusal> refusals;
};

// How a node would get its image, were it re-imaged now.
struct NodeWay {
  enum class By { in_place, through_ram, none };
  std::string node;
  By by = By::none;
  std::string why;  // not in place; of `none`: what stands in the way
};
// Of the nodes that the request, a re-image, names; in their order. Each is judged alone: what storage can
// miss is not looked at. An Error as of make_plan().
Result<std::vector<NodeWay>> ways_of(const PlannerInput& input);

// An Error means wrong input (a playbook that does not render, an unknown node in --limit), all of it
// reported at once.
Result<PlanOutcome> make_plan(const PlannerInput& input);

}  // namespace muster
