// What the executor needs from the world. Real: controller/daemon.cc; simulated: tests/sim/.
// Thread: all calls and all callbacks on the reactor's thread. A callback never runs inside the call that
// takes it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "base/wire.h"
#include "controller/power/power.h"

namespace muster {

// A node that a person switches (power driver `manual`).
struct Person {
  std::string where;      // it stands, as the spec says; may be empty
  DurationMs within = 0;  // so long they have
};

class PowerPort {
 public:
  using Done = std::function<void(Status)>;
  virtual ~PowerPort() = default;
  // Sets boot-once network, then power off (if on) and on. Not atomic: on `timeout` read state() before
  // anything else.
  virtual void netboot(const std::string& node, Done done) = 0;
  virtual void power_off(const std::string& node, Done done) = 0;
  // Whether anything here can switch this node on and off. Where nothing can, its own agent is ordered to
  // hand over to the RAM system (`kexec`, with BootPort::leave_order), and the calls beside this one are
  // refused.
  virtual bool switches(const std::string&) const { return true; }
  // Whether anything here can boot it from the network. Where nothing can, its agent is ordered as above.
  virtual bool netboots(const std::string& node) const { return switches(node); }
  // The node's provider installs a system of its own anew, and the RAM system is started from that;
  // whatever is on its disks may be lost. `order`: what the approved plan says ("reinstall" of a netboot's
  // params), and "approval", its digest: under one there is one installation, and no second one whatever
  // became of it. Done when the RAM system is on its way, which takes as long as an installation. Asked
  // again while it is under way, or by a controller that comes back, it goes on with that one.
  virtual void reinstall(const std::string& node, const Json& order, Done done) {
    (void)order;
    done(fail(Code::invalid, node + ": its driver cannot reinstall machines"));
  }
  // Where there is one, netboot, power_off and power_on ask that person: `done` comes when the effect was
  // seen or reported, perhaps hours later, or never; and state() knows nothing.
  virtual std::optional<Person> by_hand(const std::string&) const { return std::nullopt; }
  // Nothing but that: whatever it boots.
  virtual void power_on(const std::string& node, Done done) = 0;
  // A netboot of this node that has not reached its BMC yet is not carried out any more; what has goes on.
  // Its `done` gets `cancelled`.
  virtual void forget(const std::string& node) = 0;
  virtual void state(const std::string& node, std::function<void(Result<PowerState>)> done) = 0;
};

class BootPort {
 public:
  virtual ~BootPort() = default;
  // A power-on begins. From `done` on, the node's next netboot gets the RAM system and a fresh one-time
  // token; what was handed out before is worthless, durably.
  virtual void arm(const std::string& node, std::function<void(Status)> done) = 0;
  // A power-on that an earlier life of this controller began goes on: its tokens stay good, and who joined
  // with one has joined.
  virtual void rearm(const std::string& node, std::function<void(Status)> done) = 0;
  // What an armed node's own agent needs to start the RAM system by itself: params of the order `kexec`,
  // with a one-time token of this power-on.
  virtual void leave_order(const std::string& node, std::function<void(Result<Json>)> done) = 0;
  // A netboot from now on gets "boot from disk", and a token that was not used opens nothing.
  virtual void disarm(const std::string& node) = 0;
};

class LinkPort {
 public:
  virtual ~LinkPort() = default;
  // Keeps the order on offer to this node's agent until withdrawn; delivered as often as the agent asks.
  virtual void offer(const std::string& node, wire::WorkOrder order) = 0;
  virtual void withdraw(const std::string& node, const std::string& order_id) = 0;
  // Off offer too, but an agent that has it goes on with it as long as the executor expects it: the agent
  // said that it leaves, and would take `withdrawn` for a call to stay.
  virtual void let_go(const std::string& node, const std::string& order_id) = 0;
};

// What an agent says of itself each time it asks for orders; one of an older muster says no more than its
// boot id.
struct Presence {
  std::string boot_id;
  std::optional<wire::Mode> mode = {};
  std::string image_digest = {};
  std::optional<std::string> storage = {};  // of its mounts (agent/storage_state.h)
  std::string slot = {};                    // Hello::slot
  bool trial = false;                       // Hello::trial
};

// Of what an agent says: "a", "b", or nothing.
inline std::string slot_of(const std::string& word) { return word == "a" || word == "b" ? word : ""; }

// First event of every agent process.
struct Hello {
  std::string node;
  wire::Mode mode = wire::Mode::ram;
  std::string boot_id;
  std::string image_digest;  // of the running system; empty in the RAM system
  std::string slot = {};     // "a" | "b": which it runs from; empty: none, or an older agent does not say
  bool trial = false;        // this boot is not committed, and ends by itself; an older agent never says so
};

}  // namespace muster
