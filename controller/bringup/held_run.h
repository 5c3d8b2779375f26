// HeldRun: continues the run that was active when the controller stopped, as soon as its spec can be read.
// The address of a BMC, what a machine boots and the limits for its results all come from the spec. Without
// it, a run would treat each missing answer as a fault of its node: a version of muster that no longer
// accepts the stored spec would quarantine good nodes. So the run is held until the spec can be read: no
// orders are offered, no power is switched, no result is judged, problems["run"] gives the reason, and an
// agent keeps its current order. Continuing is retried when the spec changes, and at intervals if the store
// could not be read. A run that cannot be continued at all is ended as failed: otherwise it would block every
// later one. A run that was held for a long time is not continued (Executor::resume). Thread: the reactor's.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/alive.h"
#include "base/result.h"
#include "controller/current/current_spec.h"
#include "controller/executor/executor.h"
#include "controller/ports/store.h"
#include "sys/reactor.h"

namespace muster {

class HeldRun {
 public:
  // All references must outlive this object. `problems`: as in Services. `lab`: DaemonOptions::lab.
  HeldRun(Reactor& reactor, Store& store, CurrentSpec& spec, Executor& executor,
          std::map<std::string, std::string>& problems, bool lab);
  ~HeldRun();
  HeldRun(const HeldRun&) = delete;
  HeldRun& operator=(const HeldRun&) = delete;

  // To be called when the controller has started; nothing happens before.
  void begin();
  void spec_changed();
  // True if a run is waiting to be continued: the state of its nodes is unknown, and it must not be stopped.
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
  Alive alive_;
  bool held_ = false;
};

}  // namespace muster
