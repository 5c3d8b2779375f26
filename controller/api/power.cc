// Operators' power verbs. They act on exactly the node that is named, at once, and are logged.
#include "controller/api/handlers.h"
#include "controller/event_log.h"
#include "controller/power_port.h"
#include "controller/services.h"

namespace muster::api {
namespace {

PowerPort::Done answer_with_state(const CallPtr& call) {
  return [call](Status done) {
    if (!done.ok()) return call->error(done.error());
    power_state(call);
  };
}

void note(const CallPtr& call, const std::string& what) {
  call->services.events.add(0, call->arg("node"), "power", {{"action", what}, {"by", "operator"}});
}

}  // namespace

void power_state(const CallPtr& call) {
  const std::string node = call->arg("node");
  call->services.power.state(node, [call, node](Result<PowerState> state) {
    if (!state.ok()) return call->error(state.error());
    call->ok({{"node", node}, {"power", to_string(*state)}});
  });
}

void power_on(const CallPtr& call) {
  note(call, "on");
  call->services.power.power_on(call->arg("node"), answer_with_state(call));
}

void power_off(const CallPtr& call) {
  note(call, "off");
  call->services.power.power_off(call->arg("node"), answer_with_state(call));
}

void power_cycle(const CallPtr& call) {
  note(call, "cycle");
  call->services.power.power_off(call->arg("node"), [call](Status off) {
    if (!off.ok()) return call->error(off.error());
    call->services.power.power_on(call->arg("node"), answer_with_state(call));
  });
}

// The next boot only, and nothing is switched. Without a pending netboot the boot server then sends the
// machine to its disk.
void power_network_once(const CallPtr& call) {
  note(call, "network-once");
  call->services.power.boot_once_network(call->arg("node"), answer_with_state(call));
}

void power_describe(const CallPtr& call) {
  call->services.power.describe(call->arg("node"), [call](Result<Json> seen) {
    if (!seen.ok()) return call->error(seen.error());
    call->ok(*seen);
  });
}

}  // namespace muster::api
