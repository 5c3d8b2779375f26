// The planner's input: the spec and its playbooks, what was seen of each node, the built images, and the
// request. Plain data only, no I/O; the planner itself is controller/plan/planner.h.
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

struct PlannerImage {
  std::string digest;
  std::string manifest_path;    // path on the boot HTTP server: "/images/<name>/<digest>/manifest.json"
  bool trial = false;           // the image rolls back a boot that is not committed (ImageManifest::trial)
  uint64_t boot_size = 0;       // ImageManifest::boot_size()
  std::string slurm = {};       // version of its package slurmctld; "": none, or not recorded
  std::string gpu_driver = {};  // its package with NVIDIA's kernel module; "": none, or not recorded
};

// What is currently known about one node, from its row in the store and from its agent.
struct NodeObservation {
  std::optional<HardwareFacts> facts;  // none: never seen, or its disks were written afterwards
  // the last known facts, of any age: processors, memory and GPUs do not change with a re-image
  std::optional<HardwareFacts> machine;
  std::optional<wire::Mode> mode;           // mode that its agent last reported
  bool online = false;                      // its agent reported in the last minute
  NodeState state = NodeState::unknown;     // NodeRow::state
  std::string image_digest, config_digest;  // NodeRow
  std::string slurm = {};                   // PlannerImage::slurm of the image that it runs
  std::string gpu_driver = {};              // PlannerImage::gpu_driver of that image
  std::string
      product_uuid;  // of the machine that the name is bound to (NodeRow); the one found: facts.system.uuid
  bool doubtful =
      false;  // the database is an older copy, and the agent has not reported since: the row may be wrong
  // A node quarantined by a run is planned again; one quarantined by an operator is not (it may be waiting
  // for a part or being repaired).
  HeldBy held_by = HeldBy::nobody;
  std::string reason;  // why it is quarantined
  // The system that it runs is not committed: it may roll back to its default slot on its own at any time.
  bool on_trial = false;
  std::string slot;  // root slot that it runs from, as its agent reported; "": not known
  // How long its configuration and acceptance took when it was last accepted; 0: unknown.
  DurationMs accept_took = 0;
};

// `up` covers four kinds of plan: discover, wake, install, apply. The planner chooses.
enum class RequestKind { up, reimage, rollback, accept, admit, adopt, drain, undrain };
// Code::invalid for an unknown name.
Result<RequestKind> request_kind_from_string(std::string_view word);

// The terms of a rollout's batch (controller/rollout/): values that replace the spec's limits, and work done
// at the same time.
struct BatchTerms {
  std::set<std::string> prefetch;  // nodes of the next batch: only their other slot is written
  DurationMs drain_timeout = 0, trial = 0;
  int failure_budget = 0;  // negative: no limit
};

struct PlanRequest {
  RequestKind kind = RequestKind::up;
  std::vector<std::string> nodes;  // --limit; empty: all (not for reimage and admit)
  // Subset of `nodes` for which checks are overridden. up: even if nothing changed; admit and reimage: even
  // if a different machine answers; all of these: even if its hardware is not as declared.
  std::set<std::string> force = {};
  std::string profile = {};  // accept and batches: acceptance profile that replaces the spec's
  bool through_ram = false;  // reimage: always through the RAM system
  bool reimage = false;      // up: also re-image accepted nodes with an older build of their image
  std::optional<BatchTerms> batch = {};  // reimage: set for a batch of a rollout
  // Planned as if the request did not cover them: a preview has shown what is done to them first.
  std::set<std::string> skip = {};
};

struct PlannerInput {
  Spec spec;
  int64_t revision = 0;
  std::map<std::string, Playbook> playbooks;   // by name; acceptance profiles as "acceptance/<profile>"
  std::map<std::string, PlannerImage> images;  // by the spec's image name; only those that are built
  std::map<std::string, NodeObservation> nodes;
  PlanRequest request;
  std::map<std::string, std::string> public_values;
  std::string authority = {};        // fingerprint of the controller's CA, which identifies its disks
  std::string follows = {};          // Plan::follows
  std::string controller_address;    // on the provisioning network; empty: from the spec
  std::string metrics_address = {};  // on which the controller serves /metrics; empty: on none
  OwnMachine own = {};               // the machine that the controller runs on
  // Programs that every installed system gets in addition to its image, by digest (wire::SlotJob). Hosts
  // without an image get them with the orders that need them.
  std::vector<wire::SlotProgram> programs = {};
  std::string kernel_options;                  // of every installed system, before the spec's own options
  bool lab = false;                            // lab controller: what lab_only.h lists is allowed
  std::optional<GpuResults> gpu_results = {};  // set if the spec requires their limits
};

// The declared one, or the first host address.
std::string provisioning_address(const Spec& spec);

}  // namespace muster
