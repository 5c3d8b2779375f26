// Machine: the interface behind a BMC: something with a power button, a boot order and a state.
//
// Implementations: QemuMachine (lab/qemu_machine.h) and FakeMachine (lab/fake_machine.h, for tests). Commands
// return at once and take effect in order; running() is the present state. The boot order applies from the
// next start or reset on. Thread: any.
#pragma once

#include <functional>

#include "lab/qemu_args.h"

namespace muster::lab {

class Machine {
 public:
  virtual ~Machine() = default;
  virtual bool running() = 0;
  virtual void start() = 0;  // no effect while running
  virtual void cut_power() = 0;
  virtual void reset() = 0;        // no effect while off
  virtual void press_power() = 0;  // requests a shutdown of the operating system, which may ignore it
  virtual void set_boot_first(BootFirst first) = 0;
  // Called each time firmware has taken over (start, reset, also one the guest asked for) and has read the
  // boot order, from the machine's own thread. Set once, before the first start().
  virtual void on_boot(std::function<void()> booted) = 0;
};

}  // namespace muster::lab
