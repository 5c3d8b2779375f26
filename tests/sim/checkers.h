// Checkers: what must hold in every simulated world, one function each. They know the truth of the machines
// and what is durable, and believe nothing the executor says about itself.
//
//   S1 nothing outside the plan: power, disk writes and steps on a node are those the active plan names for
//      it
//   S2 one running order per node; no effect without its durable intent row
//   S3 an action recorded as succeeded is not carried out again, and was carried out under that very attempt
//   S4 limits hold at every instant
//   S5 the executor's state equals the replay of the journal
//   S6 the end of a run is a function of its journal; every node that is not accepted has a reason
//   S7 no node is quarantined because another node did not answer it
//   S8 an installed system that runs and reports is stopped in order before its power is cycled, once in an
//      attempt
//   I1 in place: nothing is done to a system but what the plan does to that one, and none is committed but
//      the one that runs
//   I2 a slot that stands always boots: it holds a whole image that did not fail
//   R1 no event holds the reactor for longer than a request may have to wait (world.h)
//   K1 what the executor keeps step by step equals what its nodes say; who could begin is looked at
//   K2 a node's row says when its disk was written last, as its journal does
//   L1 all live nodes end accepted or explained (the controller's loop asks)
//   L2 no wait outlives its deadline
#pragma once

#include <map>
#include <set>
#include <string>

#include "controller/executor/executor.h"
#include "controller/ports/store.h"
#include "tests/sim/durable.h"
#include "tests/sim/world.h"

namespace muster::sim {

class Checkers {
 public:
  Checkers(World& world, Store& store) : world_(world), store_(store) {}

  void approve(const Plan& plan);  // the operator's approval
  void controller_died() { last_power_ = 0, durable_.read(store_); }
  void written(const std::vector<Write>& rows);  // they are durable
  // Effects, as the machines see them or as they leave the controller.
  void on_power(const std::string& node, const Executor& executor);
  void on_wake(const std::string& node, const Executor& executor);               // power on, no cut
  void on_cut(const std::string& node, const Executor& executor, bool running);  // power off
  void on_step_in_slot(const std::string& node, const std::string& step, const std::string& slot);
  // `running`: its installed system is up and has been heard for a while.
  void on_cycle(const std::string& node, const Executor& executor, bool running);
  void on_offer(const std::string& node, const wire::WorkOrder& order);
  // `remembers_its_end`: that very order ended before and the node's journal says so.
  void on_order_run(const std::string& node, const wire::WorkOrder& order, bool remembers_its_end);
  void on_order_end(const std::string& node, const std::string& order, bool ok);
  void on_disk_write(const std::string& node, const std::string& serial, const std::string& content);
  void on_step(const std::string& node, const std::string& step);
  void node_stopped(const std::string& node) { running_.erase(node); }
  // States.
  void on_quarantined(const std::string& node, const std::string& reason);
  void on_succeeded(const std::string& action, int attempt);
  void at_all_times(const Executor& executor);
  void after_restart(const Executor& executor);
  void at_run_end(const Executor& executor, const RunRow& run);

 private:
  bool intent_is_durable(const std::string& action, int attempt) const {
    return durable_.has_intent(action, attempt);
  }
  StepLog replay(int64_t run);
  const Action* planned(const std::string& action) const;
  const std::vector<const Action*>& actions_of(const std::string& node) const;
  bool switches(const Action& action, const Executor& executor);
  void disks_are_marked(int64_t run);
  void ends_in_place(const StepLog& durable, const RunRow& run);

  World& world_;
  Store& store_;
  Durable durable_;
  Plan plan_;
  std::map<std::string, const Action*> by_id_;  // of plan_
  std::map<std::string, std::vector<const Action*>> by_node_;
  size_t turn_ = 0;
  std::map<std::string, std::string> running_;  // node -> order
  std::set<std::string> stops_;  // attempts, as "n001/netboot#1", in which a system got an order to stop
  std::set<std::string> carried_out_;  // orders that ended well in truth
  std::set<std::string> committed_;    // nodes whose new slot stands, whatever became of the answer to that
  TimeMs last_power_ = 0;
  std::string last_power_node_;
};

}  // namespace muster::sim
