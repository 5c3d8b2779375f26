// Bringup: from what is known to a plan, from an approved plan to a run.
//
// Collects the planner's input (spec, playbooks, images, nodes as last seen), stores plans, and starts the
// executor on an approved one. Approval re-plans: when the world changed, so that the digest differs, nothing
// starts (conflict). An approval is used once: every plan says which run it follows, so that behind the next
// run it is another one. It also answers what operators ask about nodes and runs, by merging spec, node rows
// and the executor's view. Thread: the reactor's.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/reactor.h"
#include "controller/bringup/current_spec.h"
#include "controller/bringup/disks_written.h"
#include "controller/bringup/proving.h"
#include "controller/options.h"
#include "controller/plan/planner.h"
#include "controller/run/executor.h"
#include "controller/store/store.h"

namespace muster {

class ImageService;
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
    std::string authority = {};  // fingerprint of the CA
    OwnMachine own = {};
  };
  struct Request {
    RequestKind kind = RequestKind::up;
    std::vector<std::string> nodes = {};
    std::vector<std::string> force = {};  // these nodes although nothing changed
    std::string profile = {};             // accept: another acceptance profile than the spec's
    bool through_ram = false;             // reimage: not in place
    bool reimage = false;                 // up: also accepted nodes that run an older build of their image
  };
  struct Made {
    Plan plan;
    std::string digest;
    std::vector<Refusal> refusals;
  };

  explicit Bringup(Parts parts) : parts_(parts) {}

  Result<Made> plan(const Request& request);
  // Plans, and keeps the plan so that it can be approved.
  void plan_and_store(const Request& request, std::function<void(Result<Made>)> done);
  void approve(const std::string& digest, const std::string& by, std::function<void(Result<int64_t>)> done);

  // What a bring-up of `node` alone would be under a spec that is not stored yet, `seen` being its inventory.
  // Nothing is kept.
  Result<Made> trial(const Spec& spec, const std::string& node, const NodeObservation& seen) const;

  // plan() under a spec that is not stored yet, as if `seen` were what is known of those nodes. Nothing is
  // kept. The same request gives the same digest once that spec is stored as `revision` and those
  // observations as the nodes' rows.
  Result<Made> plan_under(const Spec& spec, int64_t revision, const Request& request,
                          const std::map<std::string, NodeObservation>& seen);

  // The revision that a spec which is only planned with will get, the same until a newer one is stored. take:
  // it is stored now, and nobody else gets it.
  int64_t coming_revision(bool take = false);

  // What is known of a node now, as the planner gets it.
  NodeObservation observe(const std::string& node);

  Executor& executor() { return parts_.executor; }
  // Playbooks by name; acceptance profiles as "acceptance/<profile>".
  // Shipped ones, and with a spec its own beside and over them; invalid with the first error of those.
  Result<std::map<std::string, Playbook>> playbooks(const Spec* spec) const;
  // What a spec may name beside its own playbooks. Nothing where the folder cannot be read: plans say why.
  SpecNames names() const;
  // Every error that the spec's own playbooks make together with the shipped ones.
  Result<std::vector<SpecError>> check_playbooks(const Spec& spec) const;

 private:
  Result<PlannerInput> input(const Request& request);
  Result<PlannerInput> input(const Request& request, const Spec& spec, int64_t revision);
  Result<PlannerInput> surroundings(const Spec& spec) const;
  static Result<Made> made_of(const PlannerInput& in);
  NodeObservation observe(const std::string& node, const Written& written);
  void add_proving_times(PlannerInput& in) const;
  std::optional<DoneRun> done_run(int64_t id) const;
  Written disks_written(TimeMs since);
  Status carried_out(const std::string& digest) const;

  static constexpr DurationMs kOnline = kMinute;
  Parts parts_;
  int64_t coming_revision_ = 0;              // reserved in the store, not written; 0: none
  std::map<std::string, Request> requests_;  // by digest: what to plan again on approval
};

}  // namespace muster
