// SimNode: one server of the simulated cluster: BMC, firmware, disks, two systems, and the production Agent
// on top. What is replaced: the link's transport, the journal's file and the work itself (agent OS).
// Everything it does to itself is reported to the checkers as truth. Thread: one.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/core/agent.h"
#include "base/facts.h"
#include "controller/ports/power.h"
#include "controller/ports/run_ports.h"
#include "tests/sim/checkers.h"
#include "tests/sim/world.h"

namespace muster::sim {

// The controller as a node reaches it: may be away at any moment.
class Uplink {
 public:
  virtual ~Uplink() = default;
  virtual bool up() const = 0;
  virtual void request(const std::string& node, std::vector<std::string> have, const Presence& present,
                       ControllerLink::Orders answer) = 0;
  virtual void take(const std::string& node, wire::EventBatch batch, ControllerLink::Acked answer) = 0;
  virtual bool armed(const std::string& node) const = 0;
};

// What an image does, by its digest: good, panic, hang, emergency, mute, broken, slow.
std::string fate_of(const std::string& image);

class SimNode {
 public:
  SimNode(World& world, Checkers& checkers, Uplink& uplink, std::string name);
  ~SimNode();

  // The BMC. `done` may never be told the truth.
  void netboot(std::function<void(Status)> done);
  void power_on(std::function<void(Status)> done);
  void power_off(std::function<void(Status)> done);
  void power_state(std::function<void(Result<PowerState>)> done);
  // Faults.
  void lose_power();
  void shut_down();
  void reset();
  void crash_agent();
  void cut_network(DurationMs span) {
    world_.trace(name_, fmt::format("cut off for {}", to_human(span)));
    cut_until_ = world_.now() + span;
  }
  bool cut() const { return world_.now() < cut_until_; }
  bool answers() const { return system_ == System::installed && !cut(); }

  const std::string& name() const { return name_; }
  HardwareFacts facts() const;
  bool runs_installed(const std::string& digest) const {
    return system_ == System::installed && image_ == digest;
  }
  const std::string& boot_id() const { return boot_id_; }
  size_t applied() const { return applied_.size(); }
  // Options::in_place (slots.cc): at work from slot a. Slot 0 is a, 1 is b.
  void preinstall(const std::string& image);
  int standing() const { return standing_; }
  int running() const { return running_; }
  const std::string& slot(int which) const { return slots_[which]; }
  bool dead = false;  // never boots again
  bool bad = false;   // its acceptance fails

 private:
  friend class SimRunner;
  enum class System { none, booting, ram, installed };
  struct Host;  // an agent process with its ports

  void power_cycle(bool network);
  void stop();
  void boot();
  void start_system(System system);
  void start_agent();
  std::string content() const;

  World& world_;
  Checkers& checkers_;
  Uplink& uplink_;
  std::string name_;
  bool powered_ = false, network_once_ = false;
  System system_ = System::none;
  uint64_t boots_ = 0, agents_ = 0;
  std::string boot_id_;
  TimeMs cut_until_ = 0;
  std::unique_ptr<Host> host_;
  std::vector<OrderRecord> disk_journal_, ram_journal_;
  // The OS disk.
  bool ours_ = false;
  std::string image_, writing_, approved_;  // complete image; one half written; content it was approved for
  int slices_ = 0;
  std::set<std::string> applied_;  // steps that hold
  // Two slots: what they hold, the one that stands, the one for the next boot alone (-1: none), the one
  // that runs.
  void start_slot();
  void set_running(int slot);
  std::string slot_word() const;
  std::string slots_[2];
  std::set<std::string> applied_in_[2];
  int standing_ = 0, once_ = -1, running_ = 0;
};

}  // namespace muster::sim
