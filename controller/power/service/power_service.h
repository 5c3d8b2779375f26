// PowerService: implements the executor's PowerPort with the drivers in controller/all_drivers.cc.
//
// Drivers block; each call runs in the reactor's worker pool, one at a time per BMC, in the order of the
// calls. Address and password of a BMC are looked up when a call starts, so a corrected spec or secret takes
// effect at once. A BMC's certificate fingerprint, pinned on first use, is kept in STATE/bmc-pins.json and
// enforced from then on. After a BMC rejected a node's secret, no login with that secret is tried for a while
// (controller/power/logins.h). A call whose turn did not come in time, because calls before it took too long,
// is not made at all (`unavailable`): its caller has given up, and a machine must not be switched off an hour
// after the request. Nodes with the driver `manual` have no BMC: the executor's orders become manual tasks
// (controller/power/service/by_hand.h). Thread: the reactor's.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "controller/ports/power.h"
#include "controller/ports/reinstall.h"
#include "controller/ports/run_ports.h"
#include "controller/power/logins.h"
#include "controller/power/waiter.h"
#include "sys/os.h"
#include "sys/reactor.h"

namespace muster {

// ByHand: manual tasks of operators at machines that nothing else can switch (power driver `manual`).
//
// One task per node, in memory: a run that continues after a restart of the controller creates it again. A
// task ends when its effect is observed, when the operator reports it done (`muster power done`), or as
// `cancelled` when it is no longer needed or is replaced by a new task. It has no timeout: the caller has a
// deadline. A silent agent does not prove that a machine is off: the operator must report that.
//
// Thread: the reactor's. `done` is never called inside one of these functions.

class ByHand {
 public:
  enum class Task { netboot, on, off };
  using Done = std::function<void(Status)>;
  explicit ByHand(Reactor& reactor) : reactor_(reactor) {}

  void request(const std::string& node, Task task, Done done);
  void forget(const std::string& node);
  std::optional<Task> requested(const std::string& node) const;

  // To be called when the machine requested its RAM system: a pending netboot task is done.
  void saw_netboot(const std::string& node);
  // To be called when the node's agent reported: the machine is on.
  void saw_agent(const std::string& node);
  // To be called when the operator reports the task done. conflict: no task is pending for this node.
  Result<Task> said_done(const std::string& node);

 private:
  struct Open {
    Task task;
    Done done;
  };
  void end(const std::string& node, Status how);

  Reactor& reactor_;
  std::map<std::string, Open> open_;
};

// "restart it and boot it from the network"
std::string_view to_string(ByHand::Task task);

class PowerService : public PowerPort {
 public:
  struct Where {
    std::string driver;
    PowerTarget target;
    DurationMs within = 0;  // manual: time limit for the operator
    bool sol = false;       // ipmi: its console is read during a run
  };
  using Lookup = std::function<Result<Where>(const std::string& node)>;

  // `turn`: how long a call may wait for its turn, less than the 150 s after which clients give up; `call`:
  // how long it may then take.
  struct Times {
    DurationMs turn = 2 * kMinute, call = kMinute;
  };
  PowerService(RealReactor& reactor, std::string state, Lookup lookup);
  PowerService(RealReactor& reactor, std::string state, Lookup lookup, const Times& times);

  // Sets a function that is called right before any order to switch a node off or boot it from the network is
  // sent. If it returns an Error, that is the result and the BMC is not contacted.
  void guard(std::function<Status(const std::string& node)> may_switch) {
    may_switch_ = std::move(may_switch);
  }

  // Functions that carry out reinstall() (controller/power/provider/provider_install.h) and that stop it.
  void installer(std::function<void(const std::string& node, const Json& order, Done)> install,
                 std::function<void(const std::string& node)> forget) {
    install_ = std::move(install);
    forget_install_ = std::move(forget);
  }

  void netboot(const NodeName& node, Done done) override;
  void power_off(const NodeName& node, Done done) override;
  void forget(const NodeName& node) override;
  void state(const NodeName& node, std::function<void(Result<PowerState>)> done) override;
  void power_on(const NodeName& node, Done done) override;
  // A BMC if this is unknown: the call then reports the error.
  Switcher switcher(const NodeName& node) const override;
  void reinstall(const NodeName& node, const Json& order, Done done) override;
  // The manual tasks. The guard is called first, as for a BMC.
  ByHand& manual_tasks() { return manual_tasks_; }
  // Only for operators' requests. The state: with the reason, within seconds, of a BMC that refuses.
  void state_now(const NodeName& node, std::function<void(Result<PowerState>)> done);
  // One login, by a reading of the state within `limit`, that is not repeated: a wrong password locks no
  // account. `where` may be of a spec that is not stored; the BMC's identity is not pinned. `rejected`: user
  // and password were. While what is returned is false, it does not begin (cancelled).
  using LoginTried = std::function<void(const Status&, bool rejected)>;
  std::shared_ptr<std::atomic<bool>> try_login(const std::string& node, const Where& where, DurationMs limit,
                                               LoginTried done);
  void shut_down(const std::string& node, Done done);
  void boot_once_network(const std::string& node, Done done);
  void describe(const std::string& node, std::function<void(Result<Json>)> done);
  // Removes the pinned certificate of a node's BMC (`muster node rm`).
  void forget_pin(const std::string& node);
  bool has_pin(const std::string& node) const { return pins_.count(node) > 0; }
  // Returns the factory of the driver's Reinstall, to be called on a worker; invalid: it has none.
  Result<std::function<Result<std::unique_ptr<Reinstall>>()>> provider(const std::string& node);
  // To be called when secrets were set: logins are allowed again at every BMC.
  void forget_refusals() { logins_->once_more(); }
  // For other code that logs in to these BMCs: failed logins are counted together.
  std::shared_ptr<Logins> logins() const { return logins_; }
  // For tests: drivers use this clock from now on; earlier logins are cleared.
  void wait_by(const Waiter& waiter);

 private:
  using Work = std::function<void(Power&)>;          // worker thread
  using Failed = std::function<void(const Error&)>;  // reactor's thread
  struct Job {
    std::string node;
    Work work;
    Reactor::Task done;  // reactor's thread, after `work`
    bool takes_down = false;
    std::optional<DurationMs> retries_for = {};  // PowerTarget
    Failed failed;                               // instead of `done` when the driver could not be made
    SteadyMs requested = {};
    std::shared_ptr<std::atomic<bool>> wanted = std::make_shared<std::atomic<bool>>(true);
    std::optional<Where> where = {};  // instead of the node's
  };
  template <typename T>
  std::shared_ptr<std::atomic<bool>> submit(const std::string& node, std::function<Result<T>(Power&)> work,
                                            std::function<void(Result<T>)> done, bool takes_down = false,
                                            std::optional<DurationMs> retries_for = {});
  void enqueue(const std::string& address, Job job);
  void next(const std::string& address);
  void start(const std::string& address, Job job);
  void give_up(const std::string& address, const Job& job, Error error);
  bool request_manual(const NodeName& node, ByHand::Task task, const Done& done);
  void learn_pin(const std::string& node, const std::string& fingerprint);
  void add_known(const std::string& node, PowerTarget& target) const;

  RealReactor& reactor_;
  Files files_;
  Lookup lookup_;
  ByHand manual_tasks_;
  std::function<Status(const std::string&)> may_switch_ = [](const std::string&) { return Status(Ok{}); };
  std::function<void(const std::string&, const Json&, Done)> install_;
  std::function<void(const std::string&)> forget_install_;
  const Times times_;
  std::map<std::string, std::weak_ptr<std::atomic<bool>>> netboots_;  // by node: the newest
  std::map<std::string, std::string> pins_;
  std::shared_ptr<const Waiter> waiter_;
  std::shared_ptr<Logins> logins_;
  std::map<std::string, std::deque<Job>> queues_;  // by BMC address; the job at work is not in it
  std::map<std::string, bool> busy_;
};

}  // namespace muster
