// What a plan is made from: the spec and its playbooks, what was seen of each node, the built images, and the
// request. Values; controller/plan/planner.h makes the plan. Pure.
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
  bool trial = false;         // it rolls back a boot that is not committed (ImageManifest::trial)
};

// What is known of one node now: its row in the store and its agent.
struct NodeObservation {
  std::optional<HardwareFacts> facts;  // none: never seen, or its disks were written since
  // the last facts however old: processors, memory and GPUs do not change with a re-image
  std::optional<HardwareFacts> machine;
  std::optional<wire::Mode> mode;           // of its agent, last seen
  bool online = false;                      // its agent reported in the last minute
  NodeState state = NodeState::unknown;     // NodeRow::state
  std::string image_digest, config_digest;  // NodeRow
  std::string
      product_uuid;  // machine that the name is bound to (NodeRow); facts.system.uuid is the one found
  bool doubtful =
      false;  // the database is an older copy and its agent has not reported since: its row may be wrong
  // A node quarantined by a run is planned again, one quarantined by an operator is not (a part on order, a
  // technician at work).
  HeldBy held_by = HeldBy::nobody;
  std::string reason;  // of its quarantine
  // The system it runs is not committed: the node may go back to its default slot at any time by itself.
  bool on_trial = false;
  std::string slot;  // that it runs from, as its agent reported; "": not known
  // Duration of its own configuration and acceptance when it was last accepted; 0: unknown.
  DurationMs proving_took = 0;
};

// `up` determines itself what to do: discover, wake, install or apply.
enum class RequestKind { up, reimage, rollback, accept, admit, adopt, drain, undrain };
// By its word in the API; invalid for an unknown word.
Result<RequestKind> request_kind_from_string(std::string_view word);

// A batch of a rollout (controller/rollout/): the values that replace the spec's limits, and the work done at
// the same time.
struct BatchTerms {
  std::set<std::string> prefetch;  // nodes of the next batch: only their other slot is written
  DurationMs drain_timeout = 0, trial = 0;
  int failure_budget = 0;  // negative: any number
};

struct PlanRequest {
  RequestKind kind = RequestKind::up;
  std::vector<std::string> nodes;  // --limit; empty: all (not for reimage and admit)
  // A subset of them. up: even if nothing changed; admit and reimage: even if a different machine answers;
  // all of these: even if its hardware differs from the declaration.
  std::set<std::string> force = {};
  std::string profile = {};              // accept, and batches: acceptance profile instead of the spec's
  bool through_ram = false;              // reimage: through the RAM system, even if it could be done in place
  bool reimage = false;                  // up: also accepted nodes that run an older build of their image
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
  std::string authority = {};      // fingerprint of the controller's CA, which identifies its disks
  std::string follows = {};        // Plan::follows
  std::string controller_address;  // on the provisioning network; empty: from the spec
  OwnMachine own = {};             // where the controller itself runs
  // The programs of every system in addition to its image, by digest (wire::SlotJob), also sent to hosts
  // without an image with the orders that need them.
  std::vector<wire::SlotProgram> programs = {};
  std::string kernel_options;                  // of every installed system, before the spec's own
  bool lab = false;                            // a lab's controller: may plan what lab_only.h lists
  std::optional<GpuResults> gpu_results = {};  // if the spec requires them of its GPUs
};

// The controller's address on the provisioning network: declared, or the first host of the network.
std::string provisioning_address(const Spec& spec);

}  // namespace muster
