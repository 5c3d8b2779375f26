// FakeMachine: a Machine in memory: power, boot order, what booted. For tests; it runs nothing. Thread: any;
// one mutex inside. on_boot is called synchronously only by boot(), so a test decides when firmware has taken
// over.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "lab/machine.h"

namespace muster::lab {

class FakeMachine : public Machine {
  template <typename F>
  auto locked(F f) {
    std::lock_guard lock(mutex_);
    return f();
  }

 public:
  bool running() override {
    return locked([&] { return on_; });
  }
  void start() override {
    locked([&] {
      if (!dead_ && !on_) on_ = pending_ = true;
      return 0;
    });
  }
  void cut_power() override {
    locked([&] {
      on_ = pending_ = false;
      return 0;
    });
  }
  void reset() override {
    locked([&] {
      pending_ = on_;
      return 0;
    });
  }
  void press_power() override {
    locked([&] {
      if (listens_) on_ = pending_ = false;
      return 0;
    });
  }
  void set_boot_first(BootFirst first) override {
    locked([&] {
      first_ = first;
      return 0;
    });
  }
  void on_boot(std::function<void()> booted) override { booted_ = std::move(booted); }

  // Firmware takes over: records what it boots and calls the BMC. False when nothing was started or reset
  // since.
  bool boot() {
    if (!locked([&] {
          if (!pending_) return false;
          pending_ = false;
          boots_.push_back(first_);
          return true;
        }))
      return false;
    if (booted_) booted_();
    return true;
  }
  // The operating system reboots by itself.
  bool guest_reboot() {
    reset();
    return boot();
  }
  void set_dead(bool dead) {
    locked([&] {
      dead_ = dead;
      return 0;
    });
  }
  void set_listens(bool listens) {
    locked([&] {
      listens_ = listens;
      return 0;
    });
  }
  std::vector<BootFirst> boots() {
    return locked([&] { return boots_; });
  }

 private:
  std::mutex mutex_;
  bool on_ = false, pending_ = false, dead_ = false, listens_ = true;
  BootFirst first_ = BootFirst::disk;
  std::vector<BootFirst> boots_;
  std::function<void()> booted_;
};

}  // namespace muster::lab
