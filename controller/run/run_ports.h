// The executor's ports. Real: controller/daemon.cc; simulated: tests/sim/. Thread: all calls and all
// callbacks on the reactor's thread. A callback never runs inside the call that takes it.
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
  std::string where;      // its location, from the spec; may be empty
  DurationMs within = 0;  // time limit
};

class PowerPort {
 public:
  using Done = std::function<void(Status)>;
  virtual ~PowerPort() = default;
  // Sets boot-once network, then power off (if on) and on. Not atomic: on `timeout` read state() before
  // anything else.
  virtual void netboot(const std::string& node, Done done) = 0;
  virtual void power_off(const std::string& node, Done done) = 0;
  // Whether muster can switch this node on and off. If not, its own agent is ordered to hand over to the RAM
  // system (`kexec`, with BootPort::leave_order), and the other calls fail.
  virtual bool switches(const std::string&) const { return true; }
  // Whether muster can boot it from the network. If not, its agent is ordered as above.
  virtual bool netboots(const std::string& node) const { return switches(node); }
  // The node's provider installs a system of its own, from which the RAM system is started; the data on its
  // disks may be lost. `order`: from the approved plan ("reinstall" of a netboot's params), and "approval",
  // its digest: under one approval there is one installation, and never a second one. Done when the RAM
  // system is on its way, which takes as long as an installation. A repeated call, also after a restart of
  // the controller, continues with that one.
  virtual void reinstall(const std::string& node, const Json& order, Done done) {
    (void)order;
    done(fail(Code::invalid, node + ": its driver cannot reinstall machines"));
  }
  // If there is one, netboot, power_off and power_on create a manual task: `done` comes when the effect was
  // seen or reported, perhaps hours later, or never; and state() is unknown.
  virtual std::optional<Person> by_hand(const std::string&) const { return std::nullopt; }
  // Power only, without a network boot.
  virtual void power_on(const std::string& node, Done done) = 0;
  // A netboot of this node that has not reached its BMC yet is cancelled; one that has goes on. Its `done`
  // gets `cancelled`.
  virtual void forget(const std::string& node) = 0;
  virtual void state(const std::string& node, std::function<void(Result<PowerState>)> done) = 0;
};

class BootPort {
 public:
  virtual ~BootPort() = default;
  // A power-on begins. From `done` on, the node's next netboot gets the RAM system and a fresh one-time
  // token; what was issued before is void, durably.
  virtual void arm(const std::string& node, std::function<void(Status)> done) = 0;
  // A power-on from before a restart of this controller goes on: its tokens stay valid, and a machine that
  // joined with one has joined.
  virtual void rearm(const std::string& node, std::function<void(Status)> done) = 0;
  // What an armed node's own agent needs to start the RAM system by itself: params of the order `kexec`,
  // with a one-time token of this power-on.
  virtual void leave_order(const std::string& node, std::function<void(Result<Json>)> done) = 0;
  // A netboot from now on gets "boot from disk", and an unused token is void.
  virtual void disarm(const std::string& node) = 0;
};

class LinkPort {
 public:
  virtual ~LinkPort() = default;
  // Keeps the order on offer to this node's agent until withdrawn; delivered at every request of the agent.
  virtual void offer(const std::string& node, wire::WorkOrder order) = 0;
  virtual void withdraw(const std::string& node, const std::string& order_id) = 0;
  // Off offer too, but an agent that has it continues as long as the executor expects it: the agent reported
  // that it leaves, and `withdrawn` would make it stay.
  virtual void let_go(const std::string& node, const std::string& order_id) = 0;
};

// An agent's state in each request for orders; an agent of an older version sends only its boot id.
struct Presence {
  std::string boot_id;
  std::optional<wire::Mode> mode = {};
  std::string image_digest = {};
  std::optional<std::string> storage = {};  // of its mounts (agent/storage_state.h)
  std::string slot = {};                    // Hello::slot
  bool trial = false;                       // Hello::trial
};

// From an agent's report: "a", "b", or nothing.
inline std::string slot_of(const std::string& word) { return word == "a" || word == "b" ? word : ""; }

// First event of every agent process.
struct Hello {
  std::string node;
  wire::Mode mode = wire::Mode::ram;
  std::string boot_id;
  std::string image_digest;  // of the running system; empty in the RAM system
  std::string slot = {};     // "a" | "b": which it runs from; empty: none, or an older agent does not report
                             // it
  bool trial = false;        // this boot is not committed, and ends by itself; an older agent never reports
                             // it
};

}  // namespace muster
