// Planner: spec + playbooks + what was seen of the nodes -> an immutable Plan, or refusals. Pure: no clock,
// no I/O, no logger.
//
// Two plans in one bring-up: nodes whose hardware was never seen get a `discover` plan first (netboot +
// inventory, read-only); when it ran, the same request gives the `install` plan. Kinds it makes:
//   discover  some node in question was never seen: netboot + inventory of those nodes only
//   install   everything: [netboot] -> image -> boot_disk -> configure -> cluster stages -> acceptance
//   apply     all nodes in question run the wanted image already: configure -> cluster stages -> acceptance
//   reimage   as install for the named nodes; data disks are kept
//   admit     as install for the named nodes, nobody else is touched
//   adopt     as apply for the named adopted nodes, whose agents need not be there yet
//   accept    acceptance only
//   drain     the playbooks' steps of phase drain, playbooks in reverse order, one named node after the other
//   undrain   their steps of phase undrain, in order
//   none      nothing to do (Plan::empty())
// A node that a discovery failed to find (quarantined, no facts) does not hold the others: it is left out
// with a note as long as they have something to do, and looked for again when they have not.
// A node that an operator quarantined is left out too; naming it is refused (node-held). A drained one is
// left out unless it is named: undrain, reimage or `up --limit` bring it back. Plan::left_out lists all of
// these. An adopted node (NodeSpec::adopt) keeps its operating system: no plan netboots it, writes an image
// to it or switches it off. One whose agent does not answer is left out, and naming it is refused
// (not-running); reimage and admit refuse it (adopted-node). A shared storage whose data is there is never
// begun anew: the leader's step is told so, and where it is certain that the leader has no metadata, a plan
// that does not name it is refused (storage-leader). A node is unchanged when it is online, accepted, and
// its image and configuration digests are those of this plan.
// The machine that the controller runs on can be an adopted node. As anything else it is refused
// (own-machine), and so is, on it, the formatting of a disk that is not blank. A machine that has not the
// hardware declared is not installed: it is left out (hardware-unlike), and refused when it is named, unless
// it is forced.
//
// Order: all node-phase steps of a node's playbooks (and image-phase steps that are not baked into its
// image) are one `steps` action. Then cluster stages, in playbook order: all nodes finish a stage before any
// starts the next (soft dependencies: a quarantined node holds nobody; hard on the leader when the stage has
// `on: leader` steps). Then acceptance, stages alike.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/facts.h"
#include "base/wire.h"
#include "controller/nodes/held_by.h"
#include "controller/nodes/states.h"
#include "controller/plan/own_machine.h"
#include "controller/plan/plan.h"
#include "controller/report/gpu_results.h"
#include "controller/spec/playbook.h"
#include "controller/spec/spec.h"

namespace muster {

// A built image, as the image store knows it.
struct PlannerImage {
  std::string digest;
  std::string manifest_path;  // on the boot HTTP server: "/images/<name>/<digest>/manifest.json"
};

// What is known of one node now: its row in the store and its agent.
struct NodeObservation {
  std::optional<HardwareFacts> facts;  // none: never seen, or its disks were written since
  // the last facts however old: processors, memory and GPUs do not change with a re-image
  std::optional<HardwareFacts> machine;
  std::optional<wire::Mode> mode;           // of its agent, last seen
  bool online = false;                      // its agent was heard in the last minute
  NodeState state = NodeState::unknown;     // NodeRow::state
  std::string image_digest, config_digest;  // NodeRow
  std::string product_uuid;  // machine the name is bound to (NodeRow); facts.system.uuid is what was found
  bool doubtful =
      false;  // the database is an older copy and its agent was not heard since: its row may say anything
  // A node that a run quarantined is planned again, one that an operator took out is not (a power supply on
  // order, somebody's hands inside).
  HeldBy held_by = HeldBy::nobody;
  std::string reason;  // of its quarantine
};

// `up` finds out itself what is to be done: discover, wake, install or apply.
enum class RequestKind { up, reimage, accept, admit, adopt, drain, undrain };
// By its word in the API; invalid for a word that is none of them.
Result<RequestKind> request_kind_from_string(std::string_view word);

struct PlanRequest {
  RequestKind kind = RequestKind::up;
  std::vector<std::string> nodes;  // --limit; empty: all (not for reimage and admit)
  // Of them: up, also when nothing changed; admit and reimage, also when another machine answers; all of
  // these, also when it has other hardware than declared.
  std::set<std::string> force = {};
  // Nodes never seen are left out with a note instead of discovered: set for the plan after the discover run
  // of a bring-up.
  bool skip_unseen = false;
  std::string profile = {};  // accept: another acceptance profile than the spec's
};

struct PlannerInput {
  Spec spec;
  int64_t revision = 0;
  std::map<std::string, Playbook> playbooks;   // by name; acceptance profiles as "acceptance/<profile>"
  std::map<std::string, PlannerImage> images;  // by the spec's image name; only those that are built
  std::map<std::string, NodeObservation> nodes;
  PlanRequest request;
  std::map<std::string, std::string> public_values;
  std::string authority = {};      // fingerprint of the controller's CA: what its disks are known by
  std::string follows = {};        // Plan::follows
  std::string controller_address;  // on the provisioning network; empty: from the spec
  OwnMachine own = {};             // where the controller itself runs
  std::string kernel_options;      // of every installed system, before the spec's own
  std::optional<GpuResults> gpu_results = {};  // where the spec says that GPUs are held to them
};

// A safety refusal (exit 4) or an unmet precondition. Nothing starts while there is one.
struct Refusal {
  std::string node, rule, message;  // rule: disk-count, disk-foreign, node-swapped, image-missing, ...
};

struct PlanOutcome {
  Plan plan;  // meaningless when there are refusals
  std::vector<Refusal> refusals;
};

// An Error means wrong input (a playbook that does not render, an unknown node in --limit), all of it
// reported at once.
Result<PlanOutcome> make_plan(const PlannerInput& input);

// The controller's address on the provisioning network: declared, or the first host of the network.
std::string provisioning_address(const Spec& spec);

}  // namespace muster
