#include "tests/catch.h"

#include "controller/power/redfish.h"
#include "controller/power/wrap.h"
#include "lab/bmc_profile.h"
#include "tests/conformance/power_suite.h"
#include "tests/fakes/bmc_bench.h"

using namespace muster;
using namespace muster::conformance;

namespace {

class RedfishHarness : public PowerHarness {
 public:
  explicit RedfishHarness(const std::string& profile)
      : bench_(profile),
        power_(with_retries(make_redfish(bench_.target, bench_.waiter()), bench_.waiter(), 1)) {}
  Power& power() override { return *power_; }
  bool machine_runs() override { return bench_.machine.running(); }
  void machine_ignores_polite_requests() override { bench_.machine.set_listens(false); }
  void machine_is_dead() override { bench_.machine.set_dead(true); }
  std::string boots() override { return bench_.boots(); }

 private:
  BmcBench bench_;
  std::unique_ptr<Power> power_;
};

}  // namespace

TEST_CASE("power conformance over every emulated BMC", "[power][conformance]") {
  for (const lab::BmcProfile& profile : lab::bmc_profiles()) {
    INFO(profile.name);
    using Check = void (*)(PowerHarness&);
    for (const Check check : {switches_on_and_off, asking_for_what_holds_is_ok, polite_off_becomes_forced,
                              network_boot_holds_once, a_dead_machine_is_a_timeout, power_cycles_at_once}) {
      RedfishHarness harness(profile.name);
      check(harness);
    }
  }
}
