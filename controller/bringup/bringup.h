// Bringup: makes plans from the known state of the cluster, and starts runs from approved plans.
// Collects the planner's input (spec, playbooks, images, nodes as last seen), makes the plan on a worker
// thread, stores it, and passes an approved plan to the executor. An approval is valid for the state of the
// cluster in which the plan was made; a summary of that state is kept. If it has changed, the plan is made
// again: in a large cluster something changes all the time, mostly without effect on the plan. If the plan
// differs, nothing starts (conflict, which names what changed). An approval is used once: every plan contains
// the id of the run before it. Bringup also serves requests about nodes and runs, by merging spec, node rows
// and the executor's view. Thread: the reactor's; `done` may be called before the call returns.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/alive.h"
#include "controller/bringup/accept_times.h"
#include "controller/bringup/plan_worker.h"
#include "controller/bringup/playbook_cache.h"
#include "controller/current/current_spec.h"
#include "controller/executor/executor.h"
#include "controller/options/options.h"
#include "controller/plan/planner.h"
#include "controller/ports/store.h"
#include "controller/spec/reader/parse_spec.h"
#include "sys/reactor.h"

namespace muster {

class ImageService;
struct PreviewSources;
class Vault;

class Bringup {
 public:
  struct Parts {
    const DaemonOptions& options;
    Reactor& reactor;
    Store& store;
    CurrentSpec& spec;
    Executor& executor;
    ImageService& images;
    Vault& vault;
    PlanWorker::Offload offload;
    std::string authority = {};  // fingerprint of the CA
    OwnMachine own = {};
  };
  struct Request {
    RequestKind kind = RequestKind::up;
    std::vector<std::string> nodes = {};
    std::vector<std::string> force = {};   // include these nodes even if nothing changed
    std::string profile = {};              // accept, batches: acceptance profile instead of the spec's
    bool through_ram = false;              // reimage: not in place
    bool reimage = false;                  // up: accepted nodes with an older build of their image, too
    std::optional<BatchTerms> batch = {};  // reimage: set for a batch of a rollout
  };
  using Render = PlanWorker::Render;
  using Done = PlanWorker::Done;
  using Started = std::function<void(Result<int64_t>)>;
  using WaysFound = std::function<void(Result<std::vector<NodeWay>>)>;

  explicit Bringup(Parts parts);
  ~Bringup();
  Bringup(const Bringup&) = delete;
  Bringup& operator=(const Bringup&) = delete;

  // The plan is stored for approval. The RAM systems that it may boot are prepared first.
  void plan_and_store(const Request& request, Render render, Done done);
  void approve(const std::string& digest, const std::string& by, Started done);

  // Makes the plan for `node` alone, with inventory `seen`, under a spec that is not stored yet. The plan is
  // not stored.
  void trial(Spec spec, const NodeName& node, const NodeObservation& seen, Done done);

  // A request under a spec that may not be stored yet, with observations `seen` of its nodes.
  struct Proposal {
    std::shared_ptr<const SpecRevision> spec;
    Request request;
    std::map<std::string, NodeObservation> seen;
  };
  // Makes the plan for `proposal` without storing it. The same request gives the same digest once that spec
  // is stored and those observations are in the nodes' rows.
  void plan_proposal(const Proposal& proposal, Render render, Done done);
  // What `up` would do under `proposal` (spec_preview.h), in MadePlan::shown. Fills in the sources. Nothing
  // is stored, built or requested of nodes.
  void preview(const Proposal& proposal, const std::shared_ptr<PreviewSources>& sources, Done done);
  // Checks that the inputs of `made` are unchanged; else conflict, which names the changes.
  Status still_holds(const MadePlan& made, const Proposal& proposal);

  // Returns the revision number for plans under a spec that is not stored yet; the same until a newer spec is
  // stored. `take`: that spec is being stored now, so the next call returns a different number.
  int64_t coming_revision(bool take = false);

  // In place, or through the RAM system, for each node of this re-image.
  void find_ways(const Request& request, WaysFound done);

  NodeObservation observe(const NodeName& node);

  // A node is online if its agent reported so short a time ago.
  static constexpr DurationMs kOnline = kMinute;

  Executor& executor() { return parts_.executor; }
  // Returns the shipped playbooks and, with a spec, the spec's own playbooks and overlays. invalid: the first
  // error in the spec's.
  Result<PlaybookCache::Shared> playbooks(const Spec* spec);
  // Returns the names of the shipped playbooks, acceptance profiles and recipes, which a spec may use besides
  // its own. No playbooks and profiles if their folder cannot be read; the error then appears in plans.
  SpecNames names();
  Result<std::vector<SpecError>> check_playbooks(const Spec& spec);

 private:
  using SpecPtr = std::shared_ptr<const SpecRevision>;
  // An approval of the plan is checked against these.
  struct Kept {
    Request request;
    PlannedInputs inputs;
    std::shared_ptr<const Plan> plan;  // only the newest plan: most are approved at once
    uint64_t made = 0;                 // order in which the plans were made
  };
  struct Approval {
    std::string digest, by;
    Started done;
    Kept kept;
    Status read = fail(Code::failed, "the plan could not be read: see the controller's log");
    int planned_again = 0;
  };
  using ApprovalPtr = std::shared_ptr<Approval>;

  Result<PlanningSnapshot> snapshot_of(const Request& request);
  Result<PlanningSnapshot> snapshot_of(SpecPtr spec, const Request& request);
  Result<PlanningSnapshot> snapshot_of(const Proposal& proposal);
  Result<PlanningSnapshot> cluster_inputs(SpecPtr spec);
  Status add_gpu_results(PlanningSnapshot& snapshot);
  LookedAt read_node(const NodeName& node, NodeObservation& seen);
  AcceptTimes::Accepted accepted_runs(const Spec& spec, const PlanRequest& request) const;
  void find_accept_times(const Request& request, std::function<void()> then);
  Result<PlanningSnapshot> snapshot_to_plan(const Request& request);
  void prepare_ram_for(const Request& request, std::function<void()> then);
  void keep(const Request& request, const MadePlan& made);
  Status carried_out(const std::string& digest) const;
  void hold_against_now(const ApprovalPtr& approval, const std::string& since, std::function<void()> then);
  void plan_again(const ApprovalPtr& approval, const Error& changed);
  void read(const ApprovalPtr& approval);
  void prepare(const ApprovalPtr& approval);
  void begin(const ApprovalPtr& approval);

  Parts parts_;
  PlaybookCache playbook_cache_;
  PlanWorker worker_;
  AcceptTimes accept_times_;
  Alive alive_;
  int64_t coming_revision_ = 0;       // reserved in the store, not written; 0: none
  std::map<std::string, Kept> kept_;  // by digest
  uint64_t made_ = 0;
  SpecPtr gpu_results_of_;  // spec of gpu_results_, which may be megabytes: read once per spec
  std::optional<GpuResults> gpu_results_;
};

}  // namespace muster
