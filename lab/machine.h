// Machine: the machine that a BMC controls, as an interface: power button, boot order and power state.
//
// Implementations: QemuMachine (lab/qemu_machine.h) and FakeMachine (lab/fake_machine.h, for tests). Commands
// return immediately and take effect in order; running() is the current state. The boot order applies from
// the next start or reset on. Thread-safe.
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
  // Sets the callback for each time that firmware has taken over (start, or any reset, also by the guest) and
  // read the boot order; called on the machine's own thread. Set it once, before the first start().
  virtual void on_boot(std::function<void()> booted) = 0;
};

}  // namespace muster::lab
