// FakeMachine: a Machine for tests: power, boot order and past boots in memory only. Thread-safe (one mutex).
// on_boot is called only from within boot(), so a test decides when firmware has taken over.
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

  // Simulates that firmware takes over: records the boot device and calls the on_boot callback. False if
  // there was no start or reset since the last boot.
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
