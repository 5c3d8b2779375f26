// SimController: the controller's machine: store, agent link, boot service, power calls, the production
// planner and executor, and an operator who says `muster up` until nothing is left to do (operator.h). kill()
// is `kill -9`. Thread: one.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "controller/executor/executor.h"
#include "controller/plan/planner.h"
#include "tests/fakes/mem_store.h"
#include "tests/sim/checkers.h"
#include "tests/sim/early_store.h"
#include "tests/sim/node.h"
#include "tests/sim/operator.h"
#include "tests/sim/world.h"

namespace muster::sim {

class SimController : public Uplink {
 public:
  explicit SimController(World& world);
  ~SimController() override;

  void add_node(std::unique_ptr<SimNode> node);
  Checkers& checkers() { return checkers_; }
  SimNode& node(const std::string& name) { return *nodes_.at(name); }
  std::map<std::string, std::unique_ptr<SimNode>>& nodes() { return nodes_; }

  void start();  // first start of the controller and first `muster up`
  void kill();
  void fill_disk(int writes) { store_.fail_next(writes, fail(Code::unavailable, "disk full")); }
  void calm();  // no more faults
  bool finished() const { return finished_; }
  int runs() const { return runs_; }
  // L1: every node is accepted in truth, or explained.
  void check_end();
  Executor* executor();

  bool up() const override { return life_ != nullptr; }
  void request(const std::string& node, std::vector<std::string> have, const Presence& present,
               ControllerLink::Orders answer) override;
  void take(const std::string& node, wire::EventBatch batch, ControllerLink::Acked answer) override;
  bool armed(const std::string& node) const override;

 private:
  struct Life;  // what a kill takes away
  void begin_life();
  void next_command();
  void make_next_plan();
  void plan_and_start();
  // Options::in_place (in_place.cc)
  void begin_in_place();
  Plan plan_in_place() const;
  void check_in_place();
  void command_ended();
  void ended(const RunRow& run);
  PlannerInput input() const;
  bool maybe_die_at_effect();

  World& world_;
  MemStore store_;
  Checkers checkers_;
  WatchedStore watched_;
  Spec spec_;
  std::map<std::string, std::unique_ptr<SimNode>> nodes_;
  std::unique_ptr<Life> life_;
  TimeMs faults_ended_ = 0;
  static constexpr const char* kImage = "sha256:image-cpu";
  std::string image_ = kImage;
  Operator operator_;
  bool finished_ = false;
  int runs_ = 0, calm_runs_ = 0;
  std::map<std::string, std::string> wanted_;  // in place: what each node is to run
};

}  // namespace muster::sim
