// Discovery of undeclared machines. While it is on, they may netboot into the RAM system
// (controller/boot/service/boot_service.h) and get an order for their inventory, once per boot. They get no
// other order, and are in no plan until an operator admits them.
//
// Off after every start of the controller; on() has a time limit. A machine that was seen stays in the store,
// as the row of "unknown-<MAC>" in state "unadmitted". Everything that a hostile machine could make grow has
// a limit. Thread: the reactor's.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/facts.h"
#include "base/names.h"
#include "base/wire.h"
#include "controller/boot/service/boot_service.h"
#include "controller/ports/run_ports.h"
#include "controller/ports/store.h"
#include "sys/reactor.h"

namespace muster {

class Discovery {
 public:
  struct Hooks {
    std::function<void(const NodeName& name, const std::function<void(NodeRow&)>& change)> set_row;
    std::function<void(const NodeName& name, const HardwareFacts& facts)> seen;  // an inventory has arrived
    std::function<void(const NodeName& name)> hang_up = {};  // ends the machine's waiting request
  };
  Discovery(Reactor& reactor, BootService& boot, LinkPort& link, Hooks hooks);
  ~Discovery();
  Discovery(const Discovery&) = delete;
  Discovery& operator=(const Discovery&) = delete;

  // Sets the function that is called after each change, to update DHCP.
  void on_change(std::function<void()> listener) { listener_ = std::move(listener); }
  void on(DurationMs how_long);  // counted from now, even if already on
  void off();
  bool active() const { return until_ != 0; }
  TimeMs until() const { return until_; }  // 0: off

  // Called by the agent link, for undeclared machines only.
  void on_hello(const Hello& hello);
  void on_event(const NodeName& name, const wire::Event& event);
  void on_contact(const NodeName& name);

 private:
  void request(const NodeName& name, const std::string& boot_id);
  void take(const NodeName& name, const wire::Event& finished);
  void withdraw(const NodeName& name);

  struct Requested {
    OrderId order;  // the pending one; "" once it is answered
    std::string boot_id;
    int times = 0;
  };
  Reactor& reactor_;
  BootService& boot_;
  LinkPort& link_;
  Hooks hooks_;
  std::function<void()> listener_;
  TimeMs until_ = 0;
  Reactor::TimerId timer_ = 0;
  std::map<std::string, Requested> requests_;  // since it was switched on
};

}  // namespace muster
