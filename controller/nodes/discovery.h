// Discovery: undeclared machines. While it is on, they may netboot into the RAM system
// (controller/boot/boot_service.h) and get an order for their inventory, once per boot. They get no other
// order: they are in no plan until an operator admits them.
//
// Off by default and again after every start of the controller; on() has a time limit. What was seen stays in
// the store as the row of "unknown-<MAC>" in state "unadmitted". Everything that a hostile machine can make
// grow is bounded. Thread: the reactor's.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/facts.h"
#include "base/reactor.h"
#include "base/wire.h"
#include "controller/boot/boot_service.h"
#include "controller/run/run_ports.h"
#include "controller/spec/spec.h"
#include "controller/store/store.h"

namespace muster {

class Discovery {
 public:
  struct Hooks {
    std::function<void(const std::string& name, const std::function<void(NodeRow&)>& change)> set_row;
    std::function<void(const std::string& name, const HardwareFacts& facts)>
        seen;  // after an inventory was taken
  };
  Discovery(Reactor& reactor, BootService& boot, LinkPort& link, Hooks hooks);
  ~Discovery();
  Discovery(const Discovery&) = delete;
  Discovery& operator=(const Discovery&) = delete;

  // Called after each change, for DHCP.
  void on_change(std::function<void()> listener) { listener_ = std::move(listener); }
  void on(DurationMs how_long);  // from now; also when it is on already
  void off();
  bool active() const { return until_ != 0; }
  TimeMs until() const { return until_; }  // 0: off

  // From the agent link, about names of undeclared machines only.
  void on_hello(const Hello& hello);
  void on_event(const std::string& name, const wire::Event& event);
  void on_contact(const std::string& name);

 private:
  void ask(const std::string& name, const std::string& boot_id);
  void take(const std::string& name, const wire::Event& finished);
  void withdraw(const std::string& name);

  struct Asked {
    std::string order, boot_id;  // the order on offer; "" if it was answered
    int times = 0;
  };
  Reactor& reactor_;
  BootService& boot_;
  LinkPort& link_;
  Hooks hooks_;
  std::function<void()> listener_;
  TimeMs until_ = 0;
  Reactor::TimerId timer_ = 0;
  std::map<std::string, Asked> asked_;  // since it was switched on
};

// Whose RAM system undeclared machines boot: that of the first node with an image; "" when none has one.
std::string discovery_image(const Spec& spec);

}  // namespace muster
