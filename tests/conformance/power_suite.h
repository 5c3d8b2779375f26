// What every Power must do, whatever stands behind it. Run by tests/conformance/power_test.cc.
#pragma once

#include <memory>

#include "controller/power/power.h"

namespace muster::conformance {

// One machine and the driver to it.
class PowerHarness {
 public:
  virtual ~PowerHarness() = default;
  virtual Power& power() = 0;
  virtual bool machine_runs() = 0;
  virtual void machine_ignores_polite_requests() = 0;
  // The machine never comes on, whatever the BMC accepts.
  virtual void machine_is_dead() = 0;
  // What the machine booted so far: "n" network, "d" disk.
  virtual std::string boots() = 0;
};

// Assert with Catch2.
void switches_on_and_off(PowerHarness& h);
void asking_for_what_holds_is_ok(PowerHarness& h);
void polite_off_becomes_forced(PowerHarness& h);
void network_boot_holds_once(PowerHarness& h);
void a_dead_machine_is_a_timeout(PowerHarness& h);
void power_cycles_at_once(PowerHarness& h);
// Of a driver that cannot do so at all: before anything was done.
void network_boot_is_refused(PowerHarness& h);

}  // namespace muster::conformance
