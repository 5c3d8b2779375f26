// LiveChecks: agents check steps for a preview, and change nothing: orders of kind `steps` in mode "check",
// outside of runs. An order id that begins with 0, as no run's does, keeps their answers apart from runs.
//
// One that an agent does not finish in time is withdrawn. After a restart of the controller nothing expects
// them, so agents drop them. Thread: the reactor's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/alive.h"
#include "base/json.h"
#include "base/names.h"
#include "base/wire.h"
#include "controller/ports/run_ports.h"
#include "sys/reactor.h"

namespace muster {

class LiveChecks {
 public:
  // Of one node: {steps: [{step, status, message, diff}], error}; `error` "" if all its steps were checked.
  using Found = std::map<std::string, Json>;
  using Done = std::function<void(Found)>;

  LiveChecks(Reactor& reactor, LinkPort& link) : reactor_(reactor), link_(link) {}
  ~LiveChecks() { alive_.end(); }
  LiveChecks(const LiveChecks&) = delete;
  LiveChecks& operator=(const LiveChecks&) = delete;

  // `steps`: by node, a list of wire::Step. `done` gets an entry for each of these nodes, at the latest after
  // `within`.
  void start(const std::map<std::string, Json>& steps, DurationMs within, Done done);

  bool expects(const NodeName& node, const OrderId& order) const;
  // True if the event answers one of these orders.
  bool take(const NodeName& node, const wire::Event& event);

 private:
  struct Look {
    std::string id;
    Found found = {};
    std::set<std::string> waiting = {};  // nodes
    Done done;
    Reactor::TimerId timer = 0;
  };
  using LookPtr = std::shared_ptr<Look>;
  LookPtr look_of(const NodeName& node, const OrderId& order) const;
  void answered(const LookPtr& look, const std::string& node, const std::string& error);
  void late(const LookPtr& look, DurationMs within);

  Reactor& reactor_;
  LinkPort& link_;
  std::map<std::string, LookPtr> looks_;  // by id
  Alive alive_;
};

}  // namespace muster
