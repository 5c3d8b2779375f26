// Plan: an immutable value that names every action on every node, in order, and everything that will be
// destroyed. Made by controller/plan/planner.h, approved by its digest, carried out by
// controller/executor/executor.h, which makes no choices: it adds nothing, and skips only the actions of
// quarantined nodes. A plan never holds a secret: parameters name secrets ("secret:NAME"), and the daemon
// inserts the values when it sends an order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk_id.h"
#include "base/json.h"
#include "base/names.h"
#include "base/time.h"
#include "controller/nodes/states.h"
#include "controller/plan/action_params.h"

namespace muster {

enum class ActionKind {
  netboot,  // arm the boot service, boot-once PXE + power cycle through the power driver; done when the agent
            // joins (mode ram). params.steps: preconditions of leaving the installed system
  inventory,  // agent order (any mode): report facts; the result is {"facts": ...} (base/facts.h)
  image,      // agent order (mode ram): write the OS disk; params = wire::ImageJob. It may also netboot
              // this node again if its RAM agent stops responding (so may boot_disk)
  boot_disk,  // agent order (mode ram): reboot from disk; done when the agent sends a hello in mode installed
              // with params.digest
  // agent order (mode installed): playbook steps; params = {"steps":[wire::Step...], "mode":"apply"}. Steps
  // may request peers that are live when the order is sent ("peers_live", "next_live":
  // controller/run/narrow.h); nothing else about an order is left open.
  steps,
  check,      // agent order: acceptance steps; never changes configuration
  reboot,     // agent order (mode installed): reboot; done when a hello with a new boot id arrives
  power_off,  // through the power driver
  wake,       // power on if off, wait until the agent reports; never powers off and never changes
              // what boots
  // agent order (mode installed): params = wire::SlotJob
  write_slot,
  // agent order (mode installed): one boot from the other root slot, params = wire::BootSlotJob, and steps:
  // its preconditions; done when the agent sends a hello from params.slot with params.digest. One attempt. If
  // no agent reports by the deadline, the node is power-cycled, which boots the default slot.
  boot_slot,
  // back to the default slot, params = {"slot","digest","state"}: done when the agent sends a hello from that
  // slot (at once if the node already runs from it); otherwise an agent order `reboot`, and a power cycle if
  // no agent reports. The node's state is then `state`: accepted or degraded
  return_slot,
};
std::string_view to_string(ActionKind kind);
Result<ActionKind> action_kind_from_string(std::string_view word);

// What a plan is for (planner.h).
enum class PlanKind {
  discover,
  wake,
  install,
  apply,
  reimage,
  rollback,
  admit,
  adopt,
  accept,
  drain,
  undrain,
  none
};
std::string_view to_string(PlanKind kind);
Result<PlanKind> plan_kind_from_string(std::string_view word);
// True if a run of this kind ends with an acceptance of its nodes. In any other nothing is measured, so its
// plan has no profile.
bool measures(PlanKind kind);
// The state of a node whose actions all succeeded.
NodeState end_state(PlanKind kind);

// hard: the other action must have succeeded; if it can no longer succeed, this node is quarantined too.
// soft: it is enough that the other action ended, or that its node is quarantined.
struct Dependency {
  std::string action;
  bool hard = true;
};

struct Action {
  std::string id;  // "node01/image"; unique in the plan
  NodeName node;
  ActionKind kind = ActionKind::steps;
  std::string phase;  // shown to operators: discover, power, image, boot, configure, storage, cluster, accept
  std::string title;  // one line, shown to operators
  ActionParams params = {};
  std::vector<Dependency> after = {};
  int behind = -1;  // index of a barrier; -1: none
  DurationMs timeout = 10 * kMinute;
  int max_attempts = 2;
  // A repeatable action may be started again when its outcome is unknown. Every agent order is made
  // repeatable by the agent's journal (same id = same result) as long as that journal lives; `image` is
  // repeatable by hashing the disk.
  bool repeatable = true;
  // Not one of the node's ordinary actions: if an ordinary action has finally failed, these are done, in
  // order, instead of the remaining ones. After them the node is `returned`, not quarantined.
  bool when_failed = false;
};

struct Destruction : DiskId {
  NodeName node;
  std::string group;         // disk group in the spec: os, fast, ...
  std::string kernel_name;   // for display only
  std::string content;       // what is on it now, as text; "blank" if nothing was found
  std::string content_hash;  // compared by the agent just before writing; if it differs, nothing is written
  std::string why;           // "operating system image debian-12", "RAID0 for /scratch"
  // True for a machine without an inventory: all data on all of its disks is destroyed. Only node, content
  // and why are then set.
  bool every_disk = false;
};

struct PlanLimits {
  int parallel_imaging = 16;     // nodes in `image` at once
  int parallel_netboot = 16;     // nodes between power-on and join at once
  DurationMs power_stagger = 0;  // at least this long between two power-ons
  // The number of nodes that may be quarantined or returned to their old slot; beyond it no further node is
  // started, and none leaves its running system.
  int failure_budget = 1000000;
  DurationMs netboot = 20 * kMinute;  // power-on to the RAM agent's hello, in any action
};

struct Plan {
  PlanKind kind = PlanKind::none;
  std::string cluster;
  // Identifies the newest run and the database's history when the plan was made. After the next run the same
  // plan has a different digest, so an approval is for one run only.
  std::string follows;
  int64_t spec_revision = 0;
  std::string profile;                        // acceptance profile; empty: nothing is measured
  bool simulated = false;                     // true in a lab: every line of the report says so
  std::map<std::string, std::string> images;  // name -> digest
  PlanLimits limits;
  std::vector<std::string> nodes;  // the nodes that take part, in order
  // the subset of `nodes` that only let others use their storage: their own state does not change
  std::vector<std::string> serving;
  std::vector<std::string> unchanged;  // nodes that are already as declared
  // nodes that the request covers but the plan leaves out: quarantined by an operator, never found
  std::vector<std::string> left_out;
  std::map<std::string, std::string>
      left_out_rules;  // node in `left_out` -> the rule that leaves it out: hardware-unlike, on-trial
  std::vector<Action> actions;  // grouped by node, each node's in order
  // Groups of actions for which many others wait, as soft dependencies: a stage begins on any node only after
  // all nodes have ended their earlier actions.
  std::vector<std::vector<std::string>> barriers;
  std::vector<Destruction> destroys;
  std::vector<std::string> notes;  // notes for the operator
  // node -> digest of its planned configuration; stored when it is accepted, compared by the next plan.
  std::map<std::string, std::string> config_digests;

  bool empty() const { return actions.empty(); }
  const Action* find(const std::string& id) const;
  bool only_serves(const NodeName& node) const {
    return std::find(serving.begin(), serving.end(), node) != serving.end();
  }
};

Json to_json(const Plan& plan);  // canonical
Result<Plan> plan_from_json(const Json& json);
// The text of dump_json(to_json(plan)), whole or in pieces, without building the JSON tree, which takes
// gigabytes for 1,000 nodes.
std::string plan_text(const Plan& plan);
void write_plan(const Plan& plan, const std::function<void(std::string_view)>& take);
// Returns the nodes that their provider reinstalls before anything else is done.
std::vector<std::string> installed_by_provider(const Plan& plan);
Digest plan_digest(const Plan& plan);                     // sha256(dump_ascii(to_json(plan)))
std::string render_plan(const Plan& plan, bool verbose);  // for a terminal

// A safety refusal (exit code 4) or an unmet precondition. A plan with a refusal cannot start.
struct Refusal {
  NodeName node;
  std::string rule, message;  // rule: disk-count, disk-foreign, node-swapped, image-missing, ...
};

}  // namespace muster
