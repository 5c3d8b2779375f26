// The executor's ports, implemented in controller/daemon.cc and, simulated, in tests/sim/. Thread: all calls
// and all callbacks on the reactor's thread; a callback never runs inside the call that it was passed to.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/names.h"
#include "base/result.h"
#include "base/wire.h"
#include "controller/ports/power.h"
#include "controller/power/describe/driver_description.h"

namespace muster {

// What a manual task tells the person who switches a node.
struct Person {
  std::string where;      // its location, from the spec; may be empty
  DurationMs within = 0;  // time limit
};
struct Switcher {
  Switch by = Switch::bmc;
  Person person = {};  // of Switch::person
};

class PowerPort {
 public:
  using Done = std::function<void(Status)>;
  virtual ~PowerPort() = default;
  // Sets a one-time network boot, then switches power off (if on) and on. Not atomic: on `timeout` read
  // state() before anything else.
  virtual void netboot(const NodeName& node, Done done) = 0;
  virtual void power_off(const NodeName& node, Done done) = 0;
  // Returns what switches this node. If it cannot be booted from the network, its own agent is ordered to
  // hand over to the RAM system (`kexec`, with BootPort::leave_order), and calls that it cannot carry out
  // fail. If a person switches it, netboot, power_off and power_on create a manual task: `done` is called
  // when the effect was seen or reported, perhaps hours later, or never; and state() is unknown.
  virtual Switcher switcher(const NodeName&) const { return {}; }
  // The node's provider installs a system of its own, from which the RAM system is started; the data on the
  // node's disks may be lost. `order`: from the approved plan ("reinstall" of a netboot's params), plus
  // "approval", the plan's digest: one approval covers exactly one installation. `done` is called when the
  // RAM system is being started, which takes as long as an installation. A repeated call, also after a
  // restart of the controller, continues the installation that is under way.
  virtual void reinstall(const NodeName& node, const Json& order, Done done) {
    (void)order;
    done(fail(Code::invalid, node + ": its power driver cannot reinstall machines"));
  }
  // Without a network boot.
  virtual void power_on(const NodeName& node, Done done) = 0;
  // Cancels a netboot of this node that has not reached its BMC yet (its `done` gets `cancelled`); one that
  // has reached it continues.
  virtual void forget(const NodeName& node) = 0;
  virtual void state(const NodeName& node, std::function<void(Result<PowerState>)> done) = 0;
};

class BootPort {
 public:
  virtual ~BootPort() = default;
  // A power-on begins. Once `done` was called, the node's next netboot gets the RAM system and a new one-time
  // token; tokens issued before are void, durably.
  virtual void arm(const NodeName& node, std::function<void(Status)> done) = 0;
  // Continues a power-on from before a restart of this controller: its tokens stay valid, and a machine that
  // joined with one of them counts as joined.
  virtual void rearm(const NodeName& node, std::function<void(Status)> done) = 0;
  // Returns what an armed node's own agent needs to start the RAM system by itself: the params of order
  // `kexec`, with a one-time token of this power-on.
  virtual void leave_order(const NodeName& node, std::function<void(Result<Json>)> done) = 0;
  // From now on a netboot of the node gets "boot from disk", and an unused token is void.
  virtual void disarm(const NodeName& node) = 0;
};

class LinkPort {
 public:
  virtual ~LinkPort() = default;
  // Keeps the order on offer to this node's agent until withdrawn; delivered at every request of the agent.
  virtual void offer(const NodeName& node, wire::WorkOrder order) = 0;
  virtual void withdraw(const NodeName& node, const OrderId& order) = 0;
  // Takes the order off offer too, but an agent that has it continues as long as the executor expects it: the
  // agent reported that it is leaving, and `withdrawn` would make it stay.
  virtual void let_go(const NodeName& node, const OrderId& order) = 0;
};

// An agent's state, sent with each request for orders; agents of older versions send only their boot id.
struct Presence {
  std::string boot_id;
  std::optional<wire::Mode> mode = {};
  Digest image_digest = {};
  std::optional<std::string> storage = {};  // state of its mounts (agent/storage/storage_state.h)
  std::string slot = {};                    // Hello::slot
  bool trial = false;                       // Hello::trial
  std::string trusts = {};  // Authority::trust() that the agent has; "": it does not report it
};

// Reads a slot from an agent's report: "a", "b", or "" for anything else.
inline std::string slot_of(const std::string& word) { return word == "a" || word == "b" ? word : ""; }

// First event of every agent process.
struct Hello {
  NodeName node;
  wire::Mode mode = wire::Mode::ram;
  std::string boot_id;
  Digest image_digest;    // of the running system; empty in the RAM system
  std::string slot = {};  // slot that it runs from, "a" or "b"; empty: none, or an older agent, which does
                          // not report it
  bool trial = false;     // this boot is not committed, and rolls back by itself; an older agent never
                          // reports it
  bool loader_skipped = false;  // the boot loader did not carry out what was set for this boot
};

}  // namespace muster
