// RolloutWorld: the RolloutPort of the daemon. Thread: the reactor's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/alive.h"
#include "controller/bringup/bringup.h"
#include "controller/bringup/run_view.h"
#include "controller/link/storage_reports.h"
#include "controller/ports/store.h"
#include "controller/rollout/rollout_row.h"
#include "controller/rollout/service/rollout_port.h"
#include "controller/rollout/serving.h"

namespace muster {

// The result of a batch's run for each of its nodes, from its journal and the nodes' rows after it. Pure
// function; thread: that of the archive. `run` has ended and was read with RunRows::all or ::turns; `nodes`:
// rows of its plan's nodes, as they are now. RunEnd::night is not set. corrupt: the journal does not belong
// to the plan.
Result<rollout::RunEnd> end_of(const RunSources& run, const std::map<std::string, NodeRow>& nodes);

// What an operator should know before the approval of all batches. `slurm_of`: digest of an image -> version
// of its slurmctld, "" if unknown. Pure function.
std::vector<std::string> notes_of(const Spec& spec, const rollout::View& view,
                                  const std::function<std::string(const std::string& digest)>& slurm_of);

// Digests of the images that nodes run, or are being given by the active run (null: there is none).
std::set<std::string> images_in_use(const std::map<std::string, NodeRow>& nodes, const Plan* active);

class RolloutWorld : public RolloutPort {
 public:
  // All references must outlive RolloutWorld.
  struct Parts {
    Store& store;
    CurrentSpec& spec;
    Bringup& bringup;
    ImageService& images;
    const StorageReports& reported;
    // True if a run is held because its spec cannot be read (held_run.h).
    std::function<bool()> run_held;
    std::function<void(const rollout::Record&)> changed;
    // For the live log: {name, digest} of an image that was built, {name, error} of one that was not.
    std::function<void(const Json&)> image_event;
    PlanWorker::Offload offload;
  };
  explicit RolloutWorld(Parts parts) : parts_(std::move(parts)) {}
  ~RolloutWorld() override { alive_.end(); }

  Result<SeenCluster> look() override;
  void find_ways(const std::vector<std::string>& nodes,
                 std::function<void(Result<std::vector<NodeWay>>)> done) override;
  void plan(const BatchOrder& order, std::function<void(Result<PlannedBatch>)> done) override;
  void start(const std::string& digest, const std::string& by,
             std::function<void(Result<int64_t>)> done) override;
  void build(const std::string& image, std::function<void(Status)> done) override;
  Result<std::optional<int64_t>> tagged(const std::string& tag) override;
  Result<bool> ended(int64_t run) override;
  void read_end(int64_t run, std::function<void(Result<rollout::RunEnd>)> done) override;
  void changed(const rollout::Record& record) override;

 private:
  using SpecPtr = std::shared_ptr<const SpecRevision>;
  const rollout::Serving& serving(const SpecPtr& spec);
  std::map<std::string, rollout::ApprovedImage> built(const Spec& spec) const;
  rollout::Node node(const NodeSpec& declared, const rollout::Approval& now,
                     const rollout::Serving& serving) const;
  int64_t active_run() const;
  Result<Bringup::Request> request_for(const BatchOrder& order);

  Parts parts_;
  Alive alive_;
  SpecPtr served_by_;  // the revision that serving_ was made from
  rollout::Serving serving_;
};

}  // namespace muster
