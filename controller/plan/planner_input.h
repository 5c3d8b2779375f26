// What a plan is made from: the spec and its playbooks, what was seen of each node, the images that are
// built, and what was requested. Values; controller/plan/planner.h makes the plan. Pure.
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
#include "controller/report/gpu_results.h"
#include "controller/spec/playbook.h"
#include "controller/spec/spec.h"

namespace muster {

// A built image, as the image store knows it.
struct PlannerImage {
  std::string digest;
  std::string manifest_path;  // on the boot HTTP server: "/images/<name>/<digest>/manifest.json"
  bool trial = false;         // it rolls back from a boot that is not committed (ImageManifest::trial)
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
  // A node that a run quarantined is planned again, one that an operator quarantined is not (a part on order,
  // a technician at work).
  HeldBy held_by = HeldBy::nobody;
  std::string reason;  // of its quarantine
  // The system it runs is not committed: the node goes back to the slot that stands, at any time and by
  // itself.
  bool on_trial = false;
  std::string slot;  // that it runs from, as its agent reported; "": not known
  // What its own configuration and acceptance took when it was accepted last; 0: not known.
  DurationMs proving_took = 0;
};

// `up` finds out itself what is to be done: discover, wake, install or apply.
enum class RequestKind { up, reimage, rollback, accept, admit, adopt, drain, undrain };
// By its word in the API; invalid for a word that is none of them.
Result<RequestKind> request_kind_from_string(std::string_view word);

// A batch of a rollout (controller/rollout/): what takes the place of the spec's limits, and what is done
// beside it.
struct BatchTerms {
  std::set<std::string> prefetch;  // nodes of the next batch: their other slot is written, and nothing else
  DurationMs drain_timeout = 0, trial = 0;
  int failure_budget = 0;  // negative: any number
};

struct PlanRequest {
  RequestKind kind = RequestKind::up;
  std::vector<std::string> nodes;  // --limit; empty: all (not for reimage and admit)
  // Of them: up, also when nothing changed; admit and reimage, also when another machine answers; all of
  // these, also when it has other hardware than declared.
  std::set<std::string> force = {};
  std::string profile = {};  // accept, and batches: another acceptance profile than the spec's
  bool through_ram = false;  // reimage: by way of the RAM system, also where it could be done in place
  bool reimage = false;      // up: also accepted nodes that run an older build of their image
  std::optional<BatchTerms> batch = {};  // reimage: it is one of a rollout
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
  // What every system carries beside its image, by digest (wire::SlotJob), and what hosts that have no image
  // are given with the orders that need it.
  std::vector<wire::SlotProgram> programs = {};
  std::string kernel_options;                  // of every installed system, before the spec's own
  bool lab = false;                            // a lab's controller: may plan what lab_only.h lists
  std::optional<GpuResults> gpu_results = {};  // where the spec says that GPUs are held to them
};

// The controller's address on the provisioning network: declared, or the first host of the network.
std::string provisioning_address(const Spec& spec);

}  // namespace muster
