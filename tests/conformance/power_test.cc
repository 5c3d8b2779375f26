#include "tests/catch.h"

#include "controller/power/command.h"
#include "controller/power/ipmi.h"
#include "controller/power/redfish.h"
#include "controller/power/wrap.h"
#include "lab/bmc_profile.h"
#include "tests/conformance/power_suite.h"
#include "tests/fakes/bmc_bench.h"
#include "tests/fakes/fake_ipmitool.h"
#include "tests/fakes/ipmi_sim.h"
#include "tests/fakes/jump_waiter.h"
#include "tests/fakes/phy_bench.h"
#include "tests/fakes/power_program.h"

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

PowerTarget ipmi_target(const std::string& address, const std::string& user, const std::string& password) {
  PowerTarget target;
  target.node = "gpu01";
  target.address = address;
  target.user = user;
  target.password = password;
  return target;
}

class IpmiHarness : public PowerHarness {
 public:
  explicit IpmiHarness(const std::function<void(testing::FakeIpmitool&)>& manners) {
    manners(*bmc_);
    power_ =
        with_retries(make_ipmi(ipmi_target("10.20.1.11", bmc_->user, bmc_->password), bmc_->waiter(), bmc_),
                     bmc_->waiter(), 1);
  }
  Power& power() override { return *power_; }
  bool machine_runs() override { return bmc_->machine.running(); }
  void machine_ignores_polite_requests() override { bmc_->machine.set_listens(false); }
  void machine_is_dead() override { bmc_->machine.set_dead(true); }
  std::string boots() override { return bmc_->boots(); }

 private:
  std::shared_ptr<testing::FakeIpmitool> bmc_ = std::make_shared<testing::FakeIpmitool>();
  std::unique_ptr<Power> power_;
};

// The real ipmitool in front of the real ipmi_sim.
class IpmiSimHarness : public PowerHarness {
 public:
  Power& power() override { return *power_; }
  bool machine_runs() override { return sim_.runs(); }
  void machine_ignores_polite_requests() override { sim_.set("deaf", ""); }
  void machine_is_dead() override { sim_.set("dead", ""); }
  std::string boots() override { return sim_.get("boots"); }

 private:
  testing::IpmiSim sim_{"123456789abcdef0123456789abcdef0"};
  Waiter waiter_ = testing::jump_waiter();
  std::unique_ptr<Power> power_ = with_retries(
      make_ipmi(ipmi_target(sim_.address(), sim_.kUser, sim_.kPassword), waiter_, make_process()), waiter_,
      1);
};

class CommandHarness : public PowerHarness {
 public:
  CommandHarness() {
    PowerTarget target = ipmi_target("pdu1:7", "", "");
    target.program = "outlet";
    power_ = with_retries(make_command_power(target, waiter_, program_.folder(), make_process()), waiter_, 1);
  }
  Power& power() override { return *power_; }
  bool machine_runs() override { return program_.runs(); }
  void machine_ignores_polite_requests() override { program_.set("deaf", ""); }
  void machine_is_dead() override { program_.set("dead", ""); }
  std::string boots() override { return program_.get("boots"); }

 private:
  testing::PowerProgram program_;
  Waiter waiter_ = testing::jump_waiter();
  std::unique_ptr<Power> power_;
};

class PhyHarness : public PowerHarness {
 public:
  explicit PhyHarness(const std::function<void(lab::PhyManners&)>& manners) { bench_.api.change(manners); }
  Power& power() override { return *power_; }
  bool machine_runs() override { return bench_.machine().running(); }
  void machine_ignores_polite_requests() override { bench_.machine().set_listens(false); }
  void machine_is_dead() override { bench_.machine().set_dead(true); }
  std::string boots() override {
    bench_.machine().boot();
    return std::string(bench_.machine().boots().size(), 'd');
  }

 private:
  testing::PhyBench bench_;
  std::unique_ptr<Power> power_ = bench_.retrying();
};

using Check = void (*)(PowerHarness&);
const std::vector<Check> kSuite = {switches_on_and_off,         asking_for_what_holds_is_ok,
                                   polite_off_becomes_forced,   network_boot_holds_once,
                                   a_dead_machine_is_a_timeout, power_cycles_at_once};

// Of a driver that switches, and cannot boot a machine from the network.
const std::vector<Check> kSwitches = {switches_on_and_off, asking_for_what_holds_is_ok,
                                      polite_off_becomes_forced, network_boot_is_refused,
                                      a_dead_machine_is_a_timeout};

}  // namespace

TEST_CASE("power conformance over every emulated BMC", "[power][conformance]") {
  for (const lab::BmcProfile& profile : lab::bmc_profiles()) {
    INFO(profile.name);
    for (const Check check : kSuite) {
      RedfishHarness harness(profile.name);
      check(harness);
    }
  }
}

TEST_CASE("power conformance of ipmi, over BMCs of all manners", "[power][conformance][ipmi]") {
  using Bmc = testing::FakeIpmitool;
  const std::vector<std::pair<const char*, std::function<void(Bmc&)>>> manners = {
      {"plain", [](Bmc&) {}},
      {"suite 3 only", [](Bmc& b) { b.suites = {3}; }},
      {"suite 17 only", [](Bmc& b) { b.suites = {17}; }},
      {"boot flags expire", [](Bmc& b) { b.keeps_flags = false; }},
      {"shows neither valid nor UEFI", [](Bmc& b) { b.shows_valid = b.shows_uefi = false; }},
      {"shows no GUID", [](Bmc& b) { b.knows_guid = false; }},
      {"lags", [](Bmc& b) { b.lag = 7 * kSecond; }},
      {"no polite power-off", [](Bmc& b) { b.knows_soft_off = false; }},
      {"loses sessions", [](Bmc& b) { b.lost_sessions = 3; }},
      {"loses answers", [](Bmc& b) { b.lost_answers = 2; }},
      {"busy", [](Bmc& b) { b.busy = 5; }},
  };
  for (const auto& [name, apply] : manners)
    for (const Check check : kSuite) {
      INFO(name);
      IpmiHarness harness(apply);
      check(harness);
    }
}

TEST_CASE("power conformance of ipmi: the real ipmitool against ipmi_sim", "[power][conformance][ipmi]") {
  for (const Check check : kSuite) {
    IpmiSimHarness harness;
    check(harness);
  }
}

TEST_CASE("power conformance of command, over a real program", "[power][conformance][command]") {
  for (const Check check : kSuite) {
    CommandHarness harness;
    check(harness);
  }
}

TEST_CASE("power conformance of sakura-phy, over an API of all manners", "[power][conformance][phy]") {
  using Manners = lab::PhyManners;
  const std::vector<std::pair<const char*, std::function<void(Manners&)>>> manners = {
      {"plain", [](Manners&) {}},
      {"lags", [](Manners& m) { m.power_lag = 40 * kSecond; }},
      {"stale lists", [](Manners& m) { m.list_age = 5 * kMinute; }},
      {"remembers no power state", [](Manners& m) { m.cache_every = 0; }},
      {"loses answers", [](Manners& m) { m.lost_answers = 2; }},
      {"loses orders", [](Manners& m) { m.lost_orders = 1; }},
      {"refuses for another operation", [](Manners& m) { m.conflicts = 3; }},
      {"throttles", [](Manners& m) { m.throttled = 1, m.retry_after = 20 * kSecond; }},
  };
  for (const auto& [name, apply] : manners)
    for (const Check check : kSwitches) {
      INFO(name);
      PhyHarness harness(apply);
      check(harness);
    }
}

// What cannot be asked of a driver whose machine is switched by its own system, or by a person: that it says
// so at once, and does not pretend.
TEST_CASE("power conformance of drivers that switch nothing themselves", "[power][conformance][manual]") {
  int such = 0;
  for (const PowerDriver& driver : power_drivers()) {
    if (driver.switches && !driver.by_hand) continue;
    INFO(driver.name);
    ++such;
    CHECK(driver.switches == driver.by_hand);  // never both
    auto power = driver.make(ipmi_target("", "", ""));
    REQUIRE(power.ok());
    for (int twice = 0; twice < 2; ++twice) {
      CHECK((*power)->state(kSecond).value() == PowerState::unknown);
      for (const Status& order : {(*power)->on(kSecond), (*power)->off(kSecond, true),
                                  (*power)->off(kSecond, false), (*power)->boot_once_network(kSecond)})
        CHECK(order.error().code == Code::invalid);
    }
    CHECK((*power)->describe(kSecond).value()["driver"] == driver.name);
  }
  CHECK(such == 2);
}
