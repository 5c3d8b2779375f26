// AcceptCore: plans, carries out and judges a run inside the command's own process, with its state in a
// folder of the user. The parts are those of the daemon (controller/daemon.cc), except for the ports that
// would switch a machine on or off, boot it or install it: calls to them fail.
//
// Thread: the reactor's; may also be constructed and destroyed while the reactor is not running.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "controller/bringup/bringup.h"
#include "controller/bringup/conclude.h"
#include "controller/current/current_spec.h"
#include "controller/executor/executor.h"
#include "controller/hosts/reached.h"
#include "controller/image/service/image_service.h"
#include "controller/link/link_hub.h"
#include "controller/link/storage_reports.h"
#include "controller/options/options.h"
#include "controller/plan/plan.h"
#include "controller/ports/store.h"
#include "controller/trust/vault.h"
#include "sys/lock_file.h"
#include "sys/pki.h"
#include "sys/reactor.h"

namespace muster {

// denied if the plan has an action that is not a check, a step of a module that is not an acceptance module,
// or anything to be destroyed. Also checked in release builds, right before the plan is approved: whatever is
// wrong in a spec, a profile or the planner, a host that muster does not manage is not changed.
Status measures_only(const Plan& plan);

class NoPower : public PowerPort {
 public:
  explicit NoPower(Reactor& reactor) : reactor_(reactor) {}
  Switcher switcher(const NodeName&) const override { return {Switch::agent}; }
  void netboot(const NodeName& node, Done done) override { refuse(node, std::move(done)); }
  void power_off(const NodeName& node, Done done) override { refuse(node, std::move(done)); }
  void power_on(const NodeName& node, Done done) override { refuse(node, std::move(done)); }
  void forget(const NodeName&) override {}
  void state(const NodeName& node, std::function<void(Result<PowerState>)> done) override;

 private:
  void refuse(const std::string& node, Done done);
  Reactor& reactor_;
};

class NoBoot : public BootPort {
 public:
  explicit NoBoot(Reactor& reactor) : reactor_(reactor) {}
  void arm(const NodeName& node, std::function<void(Status)> done) override;
  void rearm(const NodeName& node, std::function<void(Status)> done) override { arm(node, std::move(done)); }
  void leave_order(const NodeName& node, std::function<void(Result<Json>)> done) override;
  void disarm(const NodeName&) override {}

 private:
  Reactor& reactor_;
};

struct AcceptCore {
  struct Owner {
    std::function<AddedToRun()> added;
    std::function<void(const RunRow&)> ended;
  };
  // `options.state` is created, accessible only to its user; `keys`: the folder of report.key and report.pub,
  // which are created if missing. conflict: a different command is using that folder (the message has its
  // pid); corrupt, denied: an error of the database, which was not changed.
  static Result<std::unique_ptr<AcceptCore>> open(RealReactor& reactor, const DaemonOptions& options,
                                                  const std::string& keys, Owner owner);

  AcceptCore(RealReactor& reactor, DaemonOptions given, LockFile lock, pki::KeyPair key,
             std::unique_ptr<Store> store, Owner owner);
  AcceptCore(const AcceptCore&) = delete;
  AcceptCore& operator=(const AcceptCore&) = delete;

  // Returns the id of the newest run; 0 if there is none.
  int64_t newest_run();
  // The host's inventory becomes the node's.
  void take_inventory(const ReachedHost& host);
  // not_found: there is no such profile. Playbooks that cannot be read are an error of the plan.
  Status find_profile(const std::string& profile);
  // True if a step of the profile uses the addresses of hosts, or if it is not known.
  bool needs_addresses(const std::string& profile);
  // Returns {"run", "nodes", ...} as in /v1/status, for the hosts of the spec.
  Json status();

  RealReactor& reactor;
  DaemonOptions options;  // `lab` is set when the hosts are known
  const LockFile lock;
  const pki::KeyPair key;
  const Owner owner;
  const std::unique_ptr<Store> store;
  std::unique_ptr<Vault> vault;
  std::map<std::string, std::string> problems;
  CurrentSpec spec{*store};
  ImageService images{reactor, options};
  NoPower power{reactor};
  NoBoot boot{reactor};
  LinkHub link{reactor, *store, [this](const Json& params) { return vault->resolve(params); }};
  Executor executor{reactor, {*store, power, boot, link}, hooks()};
  StorageReports storage;
  std::unique_ptr<Bringup> bringup;

 private:
  ExecutorHooks hooks();
  Status finish();
  void end_interrupted();
};

}  // namespace muster
