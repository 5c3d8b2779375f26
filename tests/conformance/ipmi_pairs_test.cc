// Our IPMI side against programs that nobody here wrote, in pairs: the driver and pyghmi's BMC; freeipmi's
// ipmipower and the ipmi_sim that driver, lab and tests stand on.
#include "controller/power/ipmi.h"
#include "controller/power/wrap.h"
#include "tests/catch.h"
#include "tests/conformance/power_suite.h"
#include "tests/fakes/jump_waiter.h"
#include "tests/fakes/pyghmi_bmc.h"

using namespace muster;
using namespace muster::conformance;

namespace {

template <typename Bmc>
PowerTarget target_of(const Bmc& bmc) {
  PowerTarget target;
  target.node = "gpu01";
  target.address = bmc.address();
  target.user = Bmc::kUser;
  target.password = Bmc::kPassword;
  target.cipher_suite = 3;
  return target;
}

class PyghmiHarness : public PowerHarness {
 public:
  Power& power() override { return *power_; }
  bool machine_runs() override { return bmc_.runs(); }
  void machine_ignores_polite_requests() override { bmc_.set("deaf", ""); }
  void machine_is_dead() override { bmc_.set("dead", ""); }
  std::string boots() override { return bmc_.get("boots"); }

 private:
  testing::PyghmiBmc bmc_;
  Waiter waiter_ = testing::jump_waiter();
  std::unique_ptr<Power> power_ =
      with_retries(make_ipmi(target_of(bmc_), waiter_, make_process()), waiter_, 1);
};

Output ipmipower(const std::string& address, const std::string& password, const char* verb) {
  const auto said =
      make_process()->run({.argv = {"ipmipower", "-h", address, "-u", "admin", "-p", password, "-D",
                                    "LAN_2_0", "-I", "3", "-l", "ADMIN", "-W", "opensesspriv", verb}});
  REQUIRE(said.ok());
  return *said;
}

bool has_ipmipower() { return make_process()->run({.argv = {"ipmipower", "--version"}}).ok(); }

}  // namespace

TEST_CASE("pair: the driver ipmi and pyghmi's fake BMC", "[power][conformance][ipmi][pair]") {
  if (!testing::PyghmiBmc::installed()) {
    WARN("skipped: python3-pyghmi is not installed (scripts/deps.sh test)");
    return;
  }
  for (const auto check : {switches_on_and_off, asking_for_what_holds_is_ok, polite_off_becomes_forced,
                           network_boot_holds_once, a_dead_machine_is_a_timeout, power_cycles_at_once}) {
    PyghmiHarness harness;
    check(harness);
  }
}

TEST_CASE("pair: freeipmi's ipmipower and the driver see and switch the same machine",
          "[power][conformance][ipmi][pair]") {
  if (!has_ipmipower()) {
    WARN("skipped: freeipmi-tools is not installed (scripts/deps.sh test)");
    return;
  }
  testing::IpmiSim sim("123456789abcdef0123456789abcdef0");
  const Waiter waiter = testing::jump_waiter();
  const auto power = with_retries(make_ipmi(target_of(sim), waiter, make_process()), waiter, 1);
  const auto says = [&](const char* verb, const std::string& text) {
    const Output said = ipmipower(sim.address(), testing::IpmiSim::kPassword, verb);
    INFO(said.out << said.err);
    return said.ok() && said.out.find(text) != std::string::npos;
  };
  CHECK(says("--stat", ": off"));
  REQUIRE(power->on(kMinute).ok());
  CHECK(says("--stat", ": on"));
  CHECK(says("--off", ": ok"));
  CHECK(*power->state(kMinute) == PowerState::off);
  CHECK(says("--on", ": ok"));
  CHECK(*power->state(kMinute) == PowerState::on);
  CHECK(sim.runs());
  // What it says of a wrong password stands on standard output, and our own driver comes to the same end.
  CHECK(ipmipower(sim.address(), "wrong", "--stat").out.find("password invalid") != std::string::npos);
  PowerTarget wrong = target_of(sim);
  wrong.password = "wrong";
  CHECK(make_ipmi(wrong, waiter, make_process())->state(kMinute).error().code == Code::denied);
}
