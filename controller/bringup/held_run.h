// HeldRun: takes up the run that was under way when the controller ended, as soon as its spec can be read.
//
// Where a BMC is, what a machine boots and what a result is held to comes from the spec. A run that went on
// without it would take each missing answer for a fault of the node it is about: a version of muster that no
// longer accepts the stored text would quarantine good nodes. So the run is held until
// then: nothing is offered, powered or judged, `problems` ("run") says why, and an agent keeps the order it
// has. It is tried again when the spec changed, and by itself where the store could not be read. A run that
// cannot be continued at all is ended as failed: left as it is it would be in the way of every later one. One
// that is held for long is not gone on with (Executor::resume).
// Thread: the reactor's.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/reactor.h"
#include "base/result.h"
#include "controller/bringup/current_spec.h"
#include "controller/run/executor.h"
#include "controller/store/store.h"

namespace muster {

class HeldRun {
 public:
  // None of them outlives the others' owner. `problems`: as in Services. `lab`: DaemonOptions::lab.
  HeldRun(Reactor& reactor, Store& store, CurrentSpec& spec, Executor& executor,
          std::map<std::string, std::string>& problems, bool lab);
  ~HeldRun();
  HeldRun(const HeldRun&) = delete;
  HeldRun& operator=(const HeldRun&) = delete;

  // The controller has started: nothing is held, and nothing done, before.
  void begin();
  void spec_changed();
  // A run is waiting to be continued: what its nodes are at is not known, and is not to be stopped.
  bool holds() const { return held_; }

 private:
  void try_now();
  void hold(const std::string& why, bool again_by_itself);
  Status go_on(const RunRow& run);
  void end(const RunRow& run, const Error& error);

  Reactor& reactor_;
  Store& store_;
  CurrentSpec& spec_;
  Executor& executor_;
  std::map<std::string, std::string>& problems_;
  const bool lab_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  bool held_ = false;
};

}  // namespace muster
