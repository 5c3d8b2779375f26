// The planner's working state: its inputs, the decisions so far, and helpers for all passes. The passes are
// functions that planner.cc calls on it, in order. No I/O.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/names.h"
#include "controller/plan/disk_selection.h"
#include "controller/plan/plan_steps.h"
#include "controller/plan/planner_input.h"
#include "controller/plan/simulated.h"

namespace muster {

constexpr DurationMs kInventory = 5 * kMinute;  // time limit of a hardware inventory

// Everything that is decided for one node before its actions are written.
struct Draft {
  const NodeSpec* spec = nullptr;
  const NodeObservation* seen = nullptr;
  NodeDisks disks;
  bool imaging = false;
  // It runs a different build of its declared image, and keeps it, since the request does not replace it.
  bool older = false;
  std::string slot;          // the root slot that it boots once, in place ("a", "b"); empty: not in place
  Digest slot_digest;        // digest of the image in that slot when it boots
  std::string not_in_place;  // why it goes through the RAM system
  std::string unlike;        // how its hardware differs from the declaration; if set, it is not installed
  bool serves = false;       // it only allows other nodes to mount its storage (add_servers)
  std::vector<PlannedStep> configure, accept;
  std::map<std::string, std::vector<PlannedStep>> cluster;  // playbook -> its cluster steps
  std::vector<PlannedStep> accept_cluster;
  std::set<std::string> started_for;       // programs that other nodes start on it (order_programs.h)
  bool checked = false;                    // it already has an order of checks
  std::vector<PlannedStep> pause, resume;  // steps before it leaves its system, and after it is accepted
  Digest digest;                           // configuration digest
  std::string last;                        // id of its last action so far
  std::set<std::string> behind;            // leaders' actions that are certain to precede it
};

// An action of a leader, with steps for which other nodes must wait.
struct Led {
  std::string action, node;
  std::set<std::string> behind;          // Draft::behind of that node
  std::vector<const NodeSet*> audience;  // the nodes that it serves
};

// Owned by make_plan() while it runs. `in` must outlive it.
struct Planning {
  explicit Planning(const PlannerInput& input);
  Planning(const Planning&) = delete;
  Planning& operator=(const Planning&) = delete;

  RequestKind kind() const { return in.request.kind; }
  // The request's, or else the spec's.
  const std::string& profile() const;
  bool drains() const { return kind() == RequestKind::drain || kind() == RequestKind::undrain; }
  bool requests_image() const { return kind() == RequestKind::reimage || kind() == RequestKind::admit; }
  bool rolls_back() const { return kind() == RequestKind::rollback; }
  // Whether nodes that were never seen are discovered; otherwise they are left out.
  bool discovers() const { return kind() != RequestKind::accept && !rolls_back(); }
  bool forced(const Draft& d) const { return in.request.force.count(d.spec->name) > 0; }
  // Returns the node's image; null if it is not built.
  const PlannerImage* image_of(const Draft& d) const;
  // In order.
  const std::vector<std::string>& playbooks_of(const Draft& d) const;
  void refuse(const NodeName& node, const std::string& rule, const std::string& message) {
    refusals.push_back({node, rule, message});
  }

  const PlannerInput& in;
  const Spec& spec;
  std::string address;  // the controller's
  std::vector<Draft> drafts;
  std::vector<Draft> unreachable_nodes;  // never seen, and not discovered by this plan
  Plan plan;
  std::vector<Refusal> refusals;
  std::map<std::string, std::string> why;       // PlanOutcome::why
  std::vector<std::string> problems;            // wrong input: the plan is not made
  std::set<std::string> missing, untried, own;  // playbooks already reported as such
  std::optional<Simulated> simulated;
  std::map<std::string, const HardwareFacts*> machines;  // the nodes that were seen at least once
  std::set<std::string> with_gpu_driver;  // the nodes that will run an image with NVIDIA's driver
  std::optional<ClusterContext> cluster;
  std::vector<Led> led;           // actions of leaders written so far
  std::set<std::string> leaving;  // nodes in service that leave their running system
  std::set<std::string> pausing;  // of `leaving`, those that are drained first: all but the forced ones
};

// True if its provider may, and must, install it first: it is rented, has no agent, and there is no record
// that this controller installed it. All data on its disks may be lost.
bool provider_installs(const Draft& d);
// True if the node's agent is reachable in the RAM system or, respectively, in an installed or adopted one.
bool in_ram(const Draft& d);
bool in_installed(const Draft& d);
// True if the node is, or may be, installed and its agent is silent: the node may be rebooting, powered off,
// disconnected or broken.
bool asleep(const Planning& p, const Draft& d);
// True if this controller imaged the machine: only its agents report which image they run.
bool imaged_here(const Draft& d, const HardwareFacts& facts);
// Returns what shows that the node is the controller's own machine (own_machine.h); "" if nothing does.
std::string own_sign(const Planning& p, const NodeSpec& node);
bool leads(const Planning& p, const StorageSpec& s, const NodeSpec& node);

// True if the section has enough members for a quorum, so that none of them is indispensable.
bool has_quorum(const Planning& p, const StorageSpec& s);

// Returns what can power-cycle the node if it hangs: "its BMC" or "its provider"; "" if only an operator can.
std::string ends_a_hang(const NodeSpec& node);
// Returns the digest of the image that the node will run when the plan is carried out, if known.
Digest image_digest_of(const Planning& p, const Draft& d);
// True if the node may be in service now, accepted or not, and this plan makes it leave its running system.
bool leaves_work(const Planning& p, const Draft& d);

struct NewAction {
  std::string name;  // follows the node's name: "NODE/NAME"
  ActionKind kind;
  std::string phase, title;
  ActionParams params;
  DurationMs timeout;
  int attempts = 2;
};
// Appends an action after the node's last one. The reference is valid until the next call.
Action& add(Planning& p, Draft& d, NewAction what);
void add_netboot(Planning& p, Draft& d);
// Nodes are in the order of the plan.
void group_by_node(Planning& p);

// Returns the parameters of a `steps` or `check` action. They contain a ring of nodes for steps that use the
// next live node (controller/run/narrow.h); steps with the same nodes share one ring.
ActionParams order_params(const std::vector<PlannedStep>& steps, bool check);
// Adds the steps to an action's parameters. If it is no order of steps, they are the preconditions of its
// order (wire::WorkOrder).
void add_steps(ActionParams& params, const std::vector<PlannedStep>& steps);
// Adds the firmware's boot time to `time`, the limit of an action with these steps, if one of them restarts
// the node.
DurationMs with_restart(DurationMs time, const std::vector<PlannedStep>& steps, const Spec& spec);

}  // namespace muster
