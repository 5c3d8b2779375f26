// A simulated cluster under the production controller: its executor, its agent link and its store, which
// writes a real database in a temporary folder. Everything else, the time included, is simulated: waiting
// costs nothing, and the disk takes its real time. Thread: one, beside the store's own.
#pragma once

#include <condition_variable>
#include <ctime>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/bringup/current_causes.h"
#include "controller/bringup/nodes_view.h"
#include "controller/bringup/plan_worker.h"
#include "controller/bringup/playbook_cache.h"
#include "controller/bringup/run_viewer.h"
#include "controller/current/current_spec.h"
#include "controller/executor/executor.h"
#include "controller/image/service/image_service.h"
#include "controller/link/link_hub.h"
#include "controller/link/storage_reports.h"
#include "controller/options/options.h"
#include "controller/plan/planner.h"
#include "controller/trust/authority.h"
#include "tests/fakes/temp_dir.h"
#include "tests/sim/early_store.h"
#include "tests/sim/world.h"

namespace muster::bench {

// A commit takes this time on the virtual clock, or longer on the real one, while the virtual one stands
// still.
constexpr DurationMs kCommit = 20;

class ScaleClock : public sim::SimReactor {
 public:
  // From the store's thread.
  void hand_in(Task task);
  // Runs posted work; waits until there is some.
  void wait_for_store();
  bool step(int64_t end);
  // Work of other threads in the daemon: not counted in a task.
  void by_worker(const std::string& name, const Task& work);
  // CPU time of this thread by the names of tasks.
  const std::map<std::string, double>& seconds() const { return seconds_; }

 private:
  void count();

  std::map<std::string, double> seconds_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Task> handed_in_;
};

// The store, and the start of each pending write.
class TimedStore : public sim::StoreInFront {
 public:
  TimedStore(Store& store, const Reactor& clock) : StoreInFront(store), clock_(clock) {}
  void write(std::vector<Write> batch, Done done) override;
  // Of the oldest that is not durable; none: all are.
  SteadyMs oldest() const { return on_their_way_.empty() ? SteadyMs{} : on_their_way_.front(); }

 private:
  const Reactor& clock_;
  std::deque<SteadyMs> on_their_way_;
};

// One machine: it carries out its orders, in the time that this takes.
class Machine {
 public:
  Machine(ScaleClock& clock, LinkHub& hub, sim::Random& random, const NodeSpec& spec);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  void power_cycle() { restart(wire::Mode::ram); }
  size_t steps() const { return steps_; }  // that it reported

 private:
  void restart(wire::Mode mode);
  void request();
  void take(const wire::PollReply& reply);
  void begin(const wire::WorkOrder& order);
  void write_image(const std::shared_ptr<const wire::WorkOrder>& order, int slice);
  void step(const std::shared_ptr<const wire::WorkOrder>& order, Json done);
  void finish(const wire::WorkOrder& order, Json result);
  void say(const std::string& order, const std::string& kind, Json data);
  // Not when it is restarted meanwhile.
  void later(DurationMs from, DurationMs to, std::function<void()> then);

  ScaleClock& clock_;
  LinkHub& hub_;
  sim::Random& random_;
  const NodeSpec& spec_;
  wire::Mode mode_ = wire::Mode::ram;
  std::string boot_, image_;
  uint64_t boots_ = 0, events_ = 0;
  std::set<std::string> has_;  // orders
  size_t steps_ = 0;
};

// How long calls took, in milliseconds.
class Spread {
 public:
  void add(double ms) { all_.push_back(ms); }
  double at(double share) const;  // 0.99: of a hundred calls one took longer
  size_t count() const { return all_.size(); }

 private:
  std::vector<double> all_;
};

class ScaleCluster : private PowerPort, private BootPort {
 public:
  explicit ScaleCluster(int nodes);
  ~ScaleCluster() override;
  ScaleCluster(const ScaleCluster&) = delete;
  ScaleCluster& operator=(const ScaleCluster&) = delete;

  // Discovers all nodes and installs them, each by a plan of its own. {"seconds", "calls", ...}: the cost.
  Json bring_up();
  // In place of bring_up(): all are at work, and more of them fail between looks at the causes. Returns
  // "calls".
  Json look_at_causes();
  // The database afterwards, read by another connection.
  Json read_back();

 private:
  ExecutorHooks hooks();
  void do_work();
  PlanningSnapshot snapshot();
  void carry_out(const std::string& what);
  void store(Write row);
  void run_until(const std::function<bool()>& over);
  NodesView::Parts parts() { return {true, clock_, *store_, *current_, *executor_, storage_, problems_}; }
  void look();
  void look_at_causes(const std::string& when, size_t failed);
  Json calls() const;
  void timed(const std::string& name, const std::function<Json()>& call);

  void netboot(const NodeName& node, PowerPort::Done done) override;
  void power_off(const NodeName& node, PowerPort::Done done) override;
  void power_on(const NodeName& node, PowerPort::Done done) override;
  void forget(const NodeName&) override {}
  void state(const NodeName& node, std::function<void(Result<PowerState>)> done) override;
  void arm(const NodeName& node, std::function<void(Status)> done) override;
  void rearm(const NodeName& node, std::function<void(Status)> done) override;
  void leave_order(const NodeName& node, std::function<void(Result<Json>)> done) override;
  void disarm(const NodeName&) override {}

  TempDir folder_;
  ScaleClock clock_;
  const SteadyMs begin_ = clock_.steady();
  sim::Random random_{1};
  std::map<std::string, DurationMs> slow_;  // handlers, with the longest each took
  std::unique_ptr<Store> database_;
  std::unique_ptr<TimedStore> store_;
  std::unique_ptr<LinkHub> hub_;
  std::unique_ptr<CurrentSpec> current_;
  const DaemonOptions options_{.state = folder_.path("")};
  const Authority authority_ = Authority::open(options_.state, {"127.0.0.1"}, clock_.now()).value();
  const std::unique_ptr<RealReactor> pool_ = make_reactor(1);  // of images_, which build nothing here
  const ImageService images_{*pool_, options_};
  std::deque<std::pair<Reactor::Task, Reactor::Task>> work_;  // and the work after it
  std::unique_ptr<Executor> executor_;
  ExecutorHooks real_;  // the daemon's, of executor_
  // Files have times of the real clock.
  PlaybookCache shelf_{"playbooks", [] { return std::time(nullptr) * kSecond; }};
  RunViewer viewer_;
  PlannerInput surroundings_;  // without the nodes, and the content of spec and playbooks
  const Spec spec_;
  StorageReports storage_;
  std::map<std::string, std::string> problems_;
  std::unique_ptr<CurrentCauses> causes_;
  std::map<std::string, std::unique_ptr<Machine>> machines_;
  std::map<std::string, Spread> calls_;
  std::optional<RunRow> ended_;
};

}  // namespace muster::bench
