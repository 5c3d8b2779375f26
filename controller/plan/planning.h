// A plan in the making: what it is made of, what is decided so far, and what all passes of the planner use.
// The passes are functions of it, in the order in which planner.cc calls them. Pure.
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

constexpr DurationMs kInventory = 5 * kMinute;  // a look at the hardware

// Everything known about one node before its actions are written down.
struct Draft {
  const NodeSpec* spec = nullptr;
  const NodeObservation* seen = nullptr;
  NodeDisks disks;
  bool imaging = false;
  // Its image is another build of the one that is declared, and stays: no request replaces it.
  bool older = false;
  std::string slot;          // the root slot that it boots once, in place ("a", "b"); empty: not in place
  std::string slot_digest;   // of the image in it then
  std::string not_in_place;  // why it goes through the RAM system
  std::string unlike;        // other hardware than declared, in words: it is not installed
  bool serves = false;       // only lets others in (add_servers)
  std::vector<PlannedStep> configure, accept;
  std::map<std::string, std::vector<PlannedStep>> cluster;  // by playbook
  std::vector<PlannedStep> accept_cluster;
  std::set<std::string> started_for;       // programs that others start on it (order_programs.h)
  bool checked = false;                    // it has an order of checks
  std::vector<PlannedStep> pause, resume;  // before its system is left, and when it is accepted again
  std::string digest;                      // of its configuration
  std::string last;                        // id of its last action so far
  std::set<std::string> behind;            // leaders' actions that come before it for certain
};

// An action with steps that a leader does for others, who do not go on without it.
struct Led {
  std::string action, node;
  std::set<std::string> behind;          // as of that node
  std::vector<const NodeSet*> audience;  // the nodes that it is for
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
  // Nodes never seen are discovered; else they are left out.
  bool discovers() const { return kind() != RequestKind::accept && !rolls_back(); }
  bool forced(const Draft& d) const { return in.request.force.count(d.spec->name) > 0; }
  // Null: it is not built.
  const PlannerImage* image_of(const Draft& d) const;
  // Of its role, in order.
  const std::vector<std::string>& playbooks_of(const Draft& d) const;
  void refuse(const std::string& node, const std::string& rule, const std::string& message) {
    refusals.push_back({node, rule, message});
  }

  const PlannerInput& in;
  const Spec& spec;
  std::string address;  // the controller's
  std::vector<Draft> drafts;
  std::vector<Draft> hopeless;  // never seen, and not discovered now
  Plan plan;
  std::vector<Refusal> refusals;
  std::vector<std::string> problems;            // wrong input: the plan is not made
  std::set<std::string> missing, untried, own;  // playbooks of which that was said already
  std::optional<Simulated> simulated;
  std::map<std::string, const HardwareFacts*> machines;  // the nodes that were seen at least once
  std::optional<ClusterContext> cluster;
  std::vector<Led> led;           // so far, each with steps of its own
  std::set<std::string> leaving;  // nodes whose system is left while they are at work
  std::set<std::string> pausing;  // of them, those that are taken from their work before: not the forced ones
};

// ---- what is known of a node

// Behind a provider's API: it can be switched, and not booted from the network.
bool rented(const NodeSpec& node);
// Nothing but the agent of the system it runs can bring it into the RAM system; without a BMC, nothing can
// power it on either.
bool in_band(const NodeSpec& node);
// Its provider may, and has to, install it before anything else: rented, without an agent, never installed
// from here as far as anybody knows. Everything on its disks may be lost.
bool provider_installs(const Draft& d);
// A person switches it when told to.
bool by_hand(const NodeSpec& node);
// Its agent is heard now, and runs in the RAM system; in an installed or adopted one.
bool in_ram(const Draft& d);
bool in_installed(const Draft& d);
// Installed, or perhaps: and its agent is silent. It reboots, lost its power, is cut off, or is broken: which
// one is unknown.
bool asleep(const Planning& p, const Draft& d);
// Only an agent of this controller's tells it which image it runs.
bool imaged_here(const Draft& d, const HardwareFacts& facts);
// The sign that the node is the machine under the controller's feet (own_machine.h); "" for no sign.
std::string own_sign(const Planning& p, const NodeSpec& node);
// Whether the node is the leader of the storage section.
bool leads(const Planning& p, const StorageSpec& s, const NodeSpec& node);

// Whether so many nodes keep the section that none of them is special.
bool has_quorum(const Planning& p, const StorageSpec& s);

// What ends a hang of the node, "its BMC's power cycle"; "" where nothing but a person does.
std::string ends_a_hang(const NodeSpec& node);
// Of the image that it runs when the plan is carried out, as far as that is known.
std::string image_digest_of(const Planning& p, const Draft& d);
// The node may be at work now, whether it is accepted or not, and this plan has it leave the system that it
// runs.
bool leaves_work(const Planning& p, const Draft& d);

// ---- actions

struct NewAction {
  std::string name;  // behind the node's: "NODE/NAME"
  ActionKind kind;
  std::string phase, title;
  ActionParams params;
  DurationMs timeout;
  int attempts = 2;
};
// Appends an action behind the node's last one. The reference holds until the next is added.
Action& add(Planning& p, Draft& d, NewAction what);
void add_netboot(Planning& p, Draft& d);
// The actions of a node stand together, nodes in the order of the plan.
void group_by_node(Planning& p);

// Parameters of a `steps` or `check` action. The ring is for steps that want the next live node
// (controller/run/narrow.h): one for all of them, where they are about the same nodes.
ActionParams order_params(const std::vector<PlannedStep>& steps, bool check);
// The time of an action with these steps: those among which the node restarts wait for its firmware, too.
DurationMs with_restart(DurationMs time, const std::vector<PlannedStep>& steps, const Spec& spec);

}  // namespace muster
