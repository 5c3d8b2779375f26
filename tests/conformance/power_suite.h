// What every Power must do, whatever stands behind it. Run by tests/conformance/power_test.cc.
#pragma once

#include <memory>

#include "controller/ports/power.h"

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

// One that can be told to misbehave as BMCs, providers' APIs and operators' programs do.
class RoughHarness : public PowerHarness {
 public:
  // The next so many power orders are refused for now, and nothing is done.
  virtual void refuses(int orders) = 0;
  // They are carried out, and no answer arrives.
  virtual void loses_answers(int orders) = 0;
  // They are not carried out, and no answer arrives.
  virtual void loses_orders(int orders) = 0;
  // Every power order is accepted from now on, and nothing happens.
  virtual void ignores_orders() = 0;
  // The state before is shown for half a minute after each change.
  virtual void shows_old_states() = 0;
  // The order for a network boot is accepted, and forgotten. False: this driver has no such order.
  virtual bool forgets_network_boot() = 0;
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

void refusals_that_pass_are_waited_for(RoughHarness& h);
void a_refused_on_is_nothing_done(RoughHarness& h);
void a_refused_off_is_nothing_done(RoughHarness& h);
void a_lost_answer_is_looked_for(RoughHarness& h);
void a_lost_order_is_given_again(RoughHarness& h);
void an_ignored_off_is_a_timeout(RoughHarness& h);
void old_states_are_waited_out(RoughHarness& h);
void a_forgotten_network_boot_is_no_ok(RoughHarness& h);

}  // namespace muster::conformance
