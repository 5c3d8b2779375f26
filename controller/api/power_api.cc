// Operators' power verbs. They act at once, on exactly the named node, and are logged.
#include "controller/api/handlers.h"
#include "controller/api/services.h"
#include "controller/bringup/current_causes.h"
#include "controller/power/service/power_service.h"

namespace muster::api {
namespace {

std::function<void(Result<PowerState>)> answer(const CallPtr& call) {
  return [call](Result<PowerState> state) {
    if (!state.ok()) return call->error(state.error());
    call->ok({{"node", call->arg("node")}, {"power", to_string(*state)}});
  };
}

PowerPort::Done answer_with_state(const CallPtr& call) {
  return [call](Status done) {
    if (!done.ok()) return call->error(done.error());
    call->services.power.state(NodeName(call->arg("node")), answer(call));
  };
}

void note(const CallPtr& call, const std::string& what) {
  call->record(NodeName(call->arg("node")), "power", {{"action", what}});
}

// Of an order that switches the node, and so makes it expected away.
PowerPort::Done begin_switching(const CallPtr& call, const std::string& what) {
  const NodeName node(call->arg("node"));
  note(call, what);
  call->services.causes.switched(node, what != "on");
  return [call, node, answer = answer_with_state(call)](const Status& done) {
    if (!done.ok()) call->services.causes.not_switched(node);
    answer(done);
  };
}

// Rejects power verbs for a node that does not exist, and for a machine that is switched by hand: a request
// cannot wait for a manual task.
bool refused(const CallPtr& call) {
  const NodeName node(call->arg("node"));
  if (!has_node(call, node)) return true;
  if (call->services.power.switcher(node).by != Switch::person) return false;
  call->error(fail(Code::invalid, node + " has no remote power control (driver `manual`): control its power "
                                         "yourself; `muster status` lists the tasks that a run waits for"));
  return true;
}

}  // namespace

void power_state(const CallPtr& call) {
  const NodeName node(call->arg("node"));
  if (!has_node(call, node)) return;
  call->services.power.state_now(node, answer(call));
}

void power_on(const CallPtr& call) {
  if (refused(call)) return;
  call->services.power.power_on(NodeName(call->arg("node")), begin_switching(call, "on"));
}

void power_off(const CallPtr& call) {
  if (refused(call)) return;
  call->services.power.power_off(NodeName(call->arg("node")), begin_switching(call, "off"));
}

// Shuts down the machine's system; if that fails, cuts the power.
void power_shut_down(const CallPtr& call) {
  if (refused(call)) return;
  call->services.power.shut_down(call->arg("node"), begin_switching(call, "shut-down"));
}

void power_cycle(const CallPtr& call) {
  if (refused(call)) return;
  const NodeName node(call->arg("node"));
  const auto done = begin_switching(call, "cycle");
  call->services.power.power_off(node, [call, node, done](const Status& off) {
    if (!off.ok()) return done(off);
    call->services.power.power_on(node, done);
  });
}

// Makes only the next boot a network boot; does not change the power. Unless a netboot is pending, the boot
// server then lets the machine boot from disk.
void power_network_once(const CallPtr& call) {
  if (!has_node(call, NodeName(call->arg("node")))) return;
  note(call, "network-once");
  call->services.power.boot_once_network(call->arg("node"), answer_with_state(call));
}

// The operator confirms a manual task of a run whose effect the controller cannot detect (yet).
void power_done(const CallPtr& call) {
  const NodeName node(call->arg("node"));
  if (!has_node(call, node)) return;
  if (call->services.power.switcher(node).by != Switch::person)
    return call->error(fail(
        Code::invalid, node + " does not use power driver `manual`: there is no manual task to confirm"));
  const auto task = call->services.power.manual_tasks().said_done(node);
  if (!task.ok()) return call->error(task.error());
  const std::string done(to_string(*task));
  note(call, "done by hand: " + done);
  call->ok({{"node", node}, {"done", done}});
}

void power_describe(const CallPtr& call) {
  call->services.power.describe(call->arg("node"), [call](Result<Json> seen) {
    if (!seen.ok()) return call->error(seen.error());
    call->ok(*seen);
  });
}

}  // namespace muster::api
