// A plan in the making: its inputs, the decisions so far, and helpers for all passes of the planner. The
// passes are functions on it, in the order in which planner.cc calls them. Pure.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/plan/plan_steps.h"
#include "controller/plan/disk_selection.h"
#include "controller/plan/planner_input.h"
#include "controller/plan/simulated.h"

namespace muster {

constexpr DurationMs kInventory = 5 * kMinute;  // an inventory of the hardware

// Everything known about one node before its actions are written down.
struct Draft {
  const NodeSpec* spec = nullptr;
  const NodeObservation* seen = nullptr;
  NodeDisks disks;
  bool imaging = false;
  // It runs a different build of its declared image, which stays: no request replaces it.
  bool older = false;
  std::string slot;          // the root slot that it boots once, in place ("a", "b"); empty: not in place
  std::string slot_digest;   // of the image in it then
  std::string not_in_place;  // why it goes through the RAM system
  std::string unlike;        // how its hardware differs from the declaration: it is not installed
  bool serves = false;       // only admits others to its storage (add_servers)
  std::vector<PlannedStep> configure, accept;
  std::map<std::string, std::vector<PlannedStep>> cluster;  // by playbook
  std::vector<PlannedStep> accept_cluster;
  std::set<std::string> started_for;       // programs that other nodes start on it (order_programs.h)
  bool checked = false;                    // it has an order of checks
  std::vector<PlannedStep> pause, resume;  // before it leaves its system, and when it is accepted again
  std::string digest;                      // of its configuration
  std::string last;                        // id of its last action so far
  std::set<std::string> behind;            // leaders' actions that are certain to precede it
};

// An action with steps that a leader does for others, which do not continue without it.
struct Led {
  std::string action, node;
  std::set<std::string> behind;          // as of that node
  std::vector<const NodeSet*> audience;  // the nodes that it serves
};

// Owner: make_plan(), for as long as it runs. `in` must outlive it.
struct Planning {
  explicit Planning(const PlannerInput& input);
  Planning(const Planning&) = delete;
  Planning& operator=(const Planning&) = delete;

  RequestKind kind() const { return in.request.kind; }
  // The acceptance profile that is measured: the request's, or else the spec's.
  const std::string& profile() const;
  bool drains() const { return kind() == RequestKind::drain || kind() == RequestKind::undrain; }
  bool asks_for_image() const { return kind() == RequestKind::reimage || kind() == RequestKind::admit; }
  bool rolls_back() const { return kind() == RequestKind::rollback; }
  // Whether nodes that were never seen are discovered; otherwise they are left out.
  bool discovers() const { return kind() != RequestKind::accept && !rolls_back(); }
  bool forced(const Draft& d) const { return in.request.force.count(d.spec->name) > 0; }
  // Null: the image is not built.
  const PlannerImage* image_of(const Draft& d) const;
  // Those of its role, in order.
  const std::vector<std::string>& playbooks_of(const Draft& d) const;
  void refuse(const std::string& node, const std::string& rule, const std::string& message) {
    refusals.push_back({node, rule, message});
  }

  const PlannerInput& in;
  const Spec& spec;
  std::string address;  // the controller's
  std::vector<Draft> drafts;
  std::vector<Draft> hopeless;  // never seen, and not discovered by this plan
  Plan plan;
  std::vector<Refusal> refusals;
  std::vector<std::string> problems;            // wrong input: the plan is not made
  std::set<std::string> missing, untried, own;  // playbooks for which that was already reported
  std::optional<Simulated> simulated;
  std::map<std::string, const HardwareFacts*> machines;  // the nodes that were seen at least once
  std::optional<ClusterContext> cluster;
  std::vector<Led> led;           // so far, each with steps of its own
  std::set<std::string> leaving;  // nodes that leave their system while they are at work
  std::set<std::string> pausing;  // of them, those that are drained first: not the forced ones
};

// ---- what is known about a node

// Controlled through a provider's API: its power can be switched, but it cannot be booted from the network.
bool rented(const NodeSpec& node);
// Only the agent of its running system can bring it into the RAM system; without a BMC, nothing can power it
// on either.
bool in_band(const NodeSpec& node);
// Its provider may and must install it before anything else: rented, without an agent, and with no record
// that this controller installed it. All data on its disks may be lost.
bool provider_installs(const Draft& d);
// A person switches it on request.
bool by_hand(const NodeSpec& node);
// Its agent is reachable and runs in the RAM system; in an installed or adopted system.
bool in_ram(const Draft& d);
bool in_installed(const Draft& d);
// Installed, or possibly so, and its agent is silent: it may be rebooting, without power, disconnected or
// broken.
bool asleep(const Planning& p, const Draft& d);
// Only an agent of this controller reports which image it runs.
bool imaged_here(const Draft& d, const HardwareFacts& facts);
// The sign that the node is the machine that the controller runs on (own_machine.h); "" if there is none.
std::string own_sign(const Planning& p, const NodeSpec& node);
// Whether the node is the leader of the storage section.
bool leads(const Planning& p, const StorageSpec& s, const NodeSpec& node);

// Whether enough nodes hold the section that none of them is special.
bool has_quorum(const Planning& p, const StorageSpec& s);

// What resets the node when it hangs, "its BMC's power cycle"; "" if only a person can.
std::string ends_a_hang(const NodeSpec& node);
// Digest of the image that it runs when the plan is carried out, as far as known.
std::string image_digest_of(const Planning& p, const Draft& d);
// The node may be at work now, whether it is accepted or not, and this plan makes it leave its running
// system.
bool leaves_work(const Planning& p, const Draft& d);

// ---- actions

struct NewAction {
  std::string name;  // follows the node's name: "NODE/NAME"
  ActionKind kind;
  std::string phase, title;
  ActionParams params;
  DurationMs timeout;
  int attempts = 2;
};
// Appends an action after the node's last one. The reference is valid until the next is added.
Action& add(Planning& p, Draft& d, NewAction what);
void add_netboot(Planning& p, Draft& d);
// Groups the actions by node, nodes in the order of the plan.
void group_by_node(Planning& p);

// Parameters of a `steps` or `check` action. The ring is for steps that use the next live node
// (controller/run/narrow.h): all such steps share one if they are about the same nodes.
ActionParams order_params(const std::vector<PlannedStep>& steps, bool check);
// The time limit of an action with these steps: if the node restarts between them, its firmware's time is
// included.
DurationMs with_restart(DurationMs time, const std::vector<PlannedStep>& steps, const Spec& spec);

}  // namespace muster
