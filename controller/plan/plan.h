// Plan: an immutable value that names every action on every node, in order, and everything that will be
// destroyed.
//
// Made by controller/plan/planner.h (pure), approved by its digest, carried out by controller/run/executor.h,
// which makes no choices: it adds nothing and skips only what a quarantined node would have done. A plan
// never holds a secret: parameters name secrets ("secret:NAME"), the daemon resolves them when an order is
// sent.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/time.h"
#include "controller/plan/action_params.h"

namespace muster {

enum class ActionKind {
  netboot,  // arm the boot service, boot-once PXE + power cycle through the power driver; done when the agent
            // joins (mode ram)
  inventory,  // agent order (any mode): report facts; the result is {"facts": base/facts.h}
  image,  // agent order (mode ram): write the OS disk; params = wire::ImageJob. Includes the right to netboot
          // this node again when its RAM agent is lost (so does boot_disk)
  boot_disk,  // agent order (mode ram): reboot from disk; done when the agent says hello in mode installed
              // with params.digest
  // agent order (mode installed): playbook steps; params = {"steps":[wire::Step...], "mode":"apply"}. Steps
  // may request peers that are live when the order is sent ("peers_live", "next_live":
  // controller/run/narrow.h); nothing else about an order is left open.
  steps,
  check,      // agent order: acceptance steps; never changes configuration
  reboot,     // agent order (mode installed): reboot; done when a new boot id says hello
  power_off,  // through the power driver
  wake,       // power on if it is off, wait until the agent reports; the power is never cut, nothing is
              // booted but what is there
  // agent order (mode installed): params = wire::SlotJob
  write_slot,
  // agent order (mode installed): one boot from the other root slot, params = wire::BootSlotJob; done when
  // the agent says hello from params.slot with params.digest. One attempt. Where no agent reports by
  // its deadline, the power is cycled, which boots the default slot.
  boot_slot,
  // back to the slot that stands, params = {"slot","digest","state"}: done when the agent says hello from
  // that slot (at once where it runs it already); else an agent order `reboot`, and a power cycle where
  // no agent reports. The node is then what `state` says: accepted, degraded
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

// `hard`: the other action must have succeeded; if it never will, this node is quarantined too.
// soft: it is enough that the other action ended, or that its node is quarantined.
struct Dependency {
  std::string action;
  bool hard = true;
};

struct Action {
  std::string id;  // "node01/image"; unique in the plan
  std::string node;
  ActionKind kind = ActionKind::steps;
  std::string phase;  // what operators see: discover, power, image, boot, configure, storage, cluster, accept
  std::string title;  // one line for people
  ActionParams params = {};
  std::vector<Dependency> after = {};
  int behind = -1;  // index of a barrier; -1: none
  DurationMs timeout = 10 * kMinute;
  int max_attempts = 2;
  // A repeatable action may be started again when its outcome is unknown. Every agent order is made
  // repeatable by the agent's journal (same id = same result) as long as that journal lives; `image` is
  // repeatable by hashing the disk.
  bool repeatable = true;
  // Not part of the node's ordinary actions: if one of those failed for good, these are done, in order,
  // instead of the rest. After them the node is `returned`, not quarantined.
  bool when_failed = false;
};

struct Destruction {
  std::string node;
  std::string group;  // disk group in the spec: os, fast, ...
  std::string serial, wwid, model;
  int64_t size_bytes = 0;
  std::string kernel_name;   // for people only
  std::string content;       // what is on it now, for people; "blank" when nothing was found
  std::string content_hash;  // binding: the agent writes nothing if it differs just before writing
  std::string why;           // "operating system image debian-12", "RAID0 for /scratch"
  // For a machine without an inventory: all data on all of its disks. Then only node, content and why are
  // known.
  bool every_disk = false;
};

struct PlanLimits {
  int parallel_imaging = 16;     // nodes in `image` at once
  int parallel_netboot = 16;     // nodes between power-on and join at once
  DurationMs power_stagger = 0;  // at least this long between two power-ons
  // The number of nodes that may be quarantined or go back; beyond it no further node is started, and none
  // leaves its system in place.
  int failure_budget = 1000000;
  DurationMs netboot = 20 * kMinute;  // power-on to the RAM agent's hello, whichever action it is for
};

struct Plan {
  PlanKind kind = PlanKind::none;
  std::string cluster;
  // What the plan follows: the newest run, and the database's history. After the next run the same plan has a
  // different digest: an approval is for one run.
  std::string follows;
  int64_t spec_revision = 0;
  std::string profile;                        // of acceptance; empty: nothing is measured
  bool simulated = false;                     // a lab: every report line says so
  std::map<std::string, std::string> images;  // name -> digest
  PlanLimits limits;
  std::vector<std::string> nodes;  // those that take part, in order
  // of them, those that only let others use their storage: their own state stays as it is
  std::vector<std::string> serving;
  std::vector<std::string> unchanged;  // nodes that are already as declared
  // affected nodes that are not in the plan: quarantined by an operator, never found
  std::vector<std::string> left_out;
  std::map<std::string, std::string>
      left_out_rules;           // of them, those that a rule leaves out: hardware-unlike, on-trial
  std::vector<Action> actions;  // grouped by node, each node's in order
  // Actions that many others wait for together, softly: a stage of all nodes comes after what each of them
  // did before.
  std::vector<std::vector<std::string>> barriers;
  std::vector<Destruction> destroys;
  std::vector<std::string> notes;  // remarks for the operator
  // node -> digest of what was planned for it; recorded when the node is accepted, compared by the next plan.
  std::map<std::string, std::string> config_digests;

  bool empty() const { return actions.empty(); }
  const Action* find(const std::string& id) const;
  bool only_serves(const std::string& node) const {
    return std::find(serving.begin(), serving.end(), node) != serving.end();
  }
};

Json to_json(const Plan& plan);  // canonical
Result<Plan> plan_from_json(const Json& json);
// dump_json(to_json(plan)), as one text or in pieces, without building the tree: for 1,000 nodes that takes
// gigabytes.
std::string plan_text(const Plan& plan);
void write_plan(const Plan& plan, const std::function<void(std::string_view)>& take);
// The nodes whose provider reinstalls them before anything else.
std::vector<std::string> installed_by_provider(const Plan& plan);
std::string plan_digest(const Plan& plan);                // sha256(dump_ascii(to_json(plan)))
std::string render_plan(const Plan& plan, bool verbose);  // for a terminal

// A safety refusal (exit 4) or an unmet precondition. Nothing starts while there is one.
struct Refusal {
  std::string node, rule, message;  // rule: disk-count, disk-foreign, node-swapped, image-missing, ...
};

}  // namespace muster
