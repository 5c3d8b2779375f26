#include <atomic>
#include <optional>

#include "base/json.h"
#include "controller/power/command_driver.h"
#include "controller/power/describe/driver_description.h"
#include "controller/power/ipmi.h"
#include "controller/power/redfish.h"
#include "controller/power/wrap.h"
#include "lab/bmc_profile.h"
#include "sys/http/http.h"
#include "tests/catch.h"
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

class RedfishHarness : public RoughHarness {
 public:
  explicit RedfishHarness(const std::string& profile)
      : bench_(profile),
        power_(with_retries(make_redfish(bench_.target, bench_.waiter()), bench_.waiter(), 1)) {
    bench_.before = [this](const HttpRequest& request) { return instead_of(request); };
    bench_.after = [this](const HttpRequest& request, HttpResponse& answer) { change(request, answer); };
  }
  Power& power() override { return *power_; }
  bool machine_runs() override { return bench_.machine.running(); }
  void machine_ignores_polite_requests() override { bench_.machine.set_listens(false); }
  void machine_is_dead() override { bench_.machine.set_dead(true); }
  std::string boots() override { return bench_.boots(); }
  void refuses(int orders) override { refusals_ = orders; }
  void loses_answers(int orders) override { lost_answers_ = orders; }
  void loses_orders(int orders) override { lost_orders_ = orders; }
  void ignores_orders() override { ignores_ = true; }
  void shows_old_states() override { lag_ = 30 * kSecond; }
  bool forgets_network_boot() override { return forgets_ = true; }

 private:
  static bool is_order(const HttpRequest& request) {
    return request.method == "POST" && request.path.find("ComputerSystem.Reset") != std::string::npos;
  }
  std::optional<HttpResponse> instead_of(const HttpRequest& request) {
    if (forgets_ && request.method == "PATCH") return HttpResponse{204};
    if (!is_order(request)) return std::nullopt;
    if (refusals_ > 0) return --refusals_, HttpResponse::json(409, "{}");
    if (lost_orders_ > 0) return --lost_orders_, HttpResponse::json(500, "{}");
    if (ignores_) return HttpResponse{204};
    was_ = bench_.machine.running();
    until_ = bench_.clock + lag_;
    return std::nullopt;
  }
  void change(const HttpRequest& request, HttpResponse& answer) {
    if (is_order(request) && lost_answers_ > 0) --lost_answers_, answer = HttpResponse::json(500, "{}");
    if (request.method != "GET" || bench_.clock >= until_) return;
    auto shown = parse_json(answer.body);
    if (!shown.ok() || !shown->is_object() || !shown->contains("PowerState")) return;
    (*shown)["PowerState"] = was_ ? "On" : "Off";
    answer.body = shown->dump();
  }

  std::atomic<int> refusals_{0}, lost_answers_{0}, lost_orders_{0};
  std::atomic<bool> ignores_{false}, forgets_{false}, was_{false};
  std::atomic<DurationMs> lag_{0};
  std::atomic<TimeMs> until_{0};
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

class IpmiHarness : public RoughHarness {
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
  void refuses(int orders) override { bmc_->refused_orders = orders; }
  void loses_answers(int orders) override { bmc_->lost_answers = orders; }
  void loses_orders(int orders) override { bmc_->lost_orders = orders; }
  void ignores_orders() override { bmc_->ignores_orders = true; }
  void shows_old_states() override { bmc_->lag = 30 * kSecond; }
  bool forgets_network_boot() override { return bmc_->forgets_boot = true; }

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

class CommandHarness : public RoughHarness {
 public:
  explicit CommandHarness(const std::function<void(testing::PowerProgram&)>& manners) {
    PowerTarget target = ipmi_target("pdu1:7", "", "");
    target.program = "outlet";
    power_ = with_retries(make_command_power(target, waiter_, program_.folder(), make_process()), waiter_, 1);
    manners(program_);
  }
  Power& power() override { return *power_; }
  bool machine_runs() override { return program_.runs(); }
  void machine_ignores_polite_requests() override { program_.set("deaf", ""); }
  void machine_is_dead() override { program_.set("dead", ""); }
  std::string boots() override { return program_.get("boots"); }
  void refuses(int orders) override { orders_fail(orders, "conflict"); }
  void loses_answers(int orders) override { orders_fail(orders, "lost"); }
  void loses_orders(int orders) override { orders_fail(orders, "unheard"); }
  void ignores_orders() override { program_.set("ignores", ""); }
  void shows_old_states() override { program_.set("lag", "10"); }
  bool forgets_network_boot() override {
    program_.set("forgets", "");
    return true;
  }

 private:
  // Of the next order only: the other one is not meant.
  void orders_fail(int orders, const std::string& how) {
    program_.fails(program_.runs() ? "off" : "on", orders, how);
  }
  testing::PowerProgram program_;
  Waiter waiter_ = testing::jump_waiter();
  std::unique_ptr<Power> power_;
};

class PhyHarness : public RoughHarness {
 public:
  explicit PhyHarness(const std::function<void(testing::PhyBench&)>& manners) { manners(bench_); }
  Power& power() override { return *power_; }
  bool machine_runs() override { return bench_.machine().running(); }
  void machine_ignores_polite_requests() override { bench_.machine().set_listens(false); }
  void machine_is_dead() override { bench_.machine().set_dead(true); }
  std::string boots() override {
    bench_.machine().boot();
    return std::string(bench_.machine().boots().size(), 'd');
  }
  void refuses(int orders) override {
    bench_.api.change([orders](lab::PhyManners& m) { m.conflicts = orders; });
  }
  void loses_answers(int orders) override {
    bench_.api.change([orders](lab::PhyManners& m) { m.lost_answers = orders; });
  }
  void loses_orders(int orders) override {
    bench_.api.change([orders](lab::PhyManners& m) { m.lost_orders = orders; });
  }
  void ignores_orders() override {
    bench_.api.change([](lab::PhyManners& m) { m.ignores_orders = true; });
  }
  void shows_old_states() override {
    bench_.api.change([](lab::PhyManners& m) { m.power_lag = 30 * kSecond; });
  }
  bool forgets_network_boot() override { return false; }

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

using RoughCheck = void (*)(RoughHarness&);
const std::vector<RoughCheck> kRough = {
    refusals_that_pass_are_waited_for, a_refused_on_is_nothing_done,      a_refused_off_is_nothing_done,
    a_lost_answer_is_looked_for,       a_lost_order_is_given_again,       an_ignored_off_is_a_timeout,
    old_states_are_waited_out,         a_forgotten_network_boot_is_no_ok,
};

// So many next requests of this kind are answered by a gateway before the API.
void gateway(testing::PhyBench& bench, const std::string& method, const std::string& part, int times) {
  auto left = std::make_shared<std::atomic<int>>(times);
  bench.instead = [=](const HttpRequest& request) -> std::optional<HttpResponse> {
    const bool meant = request.method == method && request.path.find(part) != std::string::npos &&
                       request.headers.count("Authorization") > 0;  // not the look at its certificate
    if (!meant || *left <= 0) return std::nullopt;
    --*left;
    return HttpResponse::text(part == "power_control" ? 503 : 502, "<html>Bad Gateway</html>");
  };
}

// An operation of the provider's own, which is over after a minute.
void busy_for_a_minute(testing::PhyBench& bench) {
  const TimeMs until = bench.clock + kMinute;
  bench.after = [&bench, until](const HttpRequest& request, HttpResponse& answer) {
    auto body = parse_json(answer.body);
    if (request.method != "GET" || bench.clock >= until || !body.ok() || !body->contains("servers")) return;
    for (Json& server : (*body)["servers"]) server["lock_status"] = "configure_raid";
    answer.body = body->dump();
  };
}

}  // namespace

TEST_CASE("power conformance over every emulated BMC", "[power][conformance]") {
  for (const lab::BmcProfile& profile : lab::bmc_profiles()) {
    INFO(profile.name);
    for (const Check check : kSuite) {
      RedfishHarness harness(profile.name);
      check(harness);
    }
    for (const RoughCheck check : kRough) {
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
  for (const auto& [name, apply] : {manners[0], manners[3], manners[7]})
    for (const RoughCheck check : kRough) {
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

TEST_CASE("power conformance of command, over real programs of all manners",
          "[power][conformance][command]") {
  using Program = testing::PowerProgram;
  const std::vector<std::pair<const char*, std::function<void(Program&)>>> manners = {
      {"plain", [](Program&) {}},
      {"does not know what boots next", [](Program& p) { p.set("dumb", ""); }},
      {"lags", [](Program& p) { p.set("lag", "5"); }},
      {"cannot look at first", [](Program& p) { p.fails("state", 3, "unavailable"); }},
      {"looks in vain", [](Program& p) { p.fails("state", 3, "timeout"); }},
      {"is busy at a request for a state", [](Program& p) { p.fails("state", 3, "conflict"); }},
      {"is busy at a request for its capabilities",
       [](Program& p) { p.fails("capabilities", 2, "conflict"); }},
      {"is busy when it is to boot the network", [](Program& p) { p.fails("network-once", 2, "conflict"); }},
      {"loses the answer to that", [](Program& p) { p.fails("network-once", 1, "lost"); }},
      {"loses that order", [](Program& p) { p.fails("network-once", 1, "unheard"); }},
      {"is not there for an order", [](Program& p) { p.fails("on", 2, "unavailable"); }},
      {"answers an order with text", [](Program& p) { p.fails("on", 1, "babble"); }},
      {"does not know what became of an order", [](Program& p) { p.fails("off", 1, "timeout"); }},
  };
  // Each look is a process: what waits for minutes is checked with the plain one only.
  const std::vector<Check> brief = {switches_on_and_off, asking_for_what_holds_is_ok,
                                    network_boot_holds_once};
  for (const auto& [name, apply] : manners)
    for (const Check check : name == manners.front().first ? kSuite : brief) {
      INFO(name);
      CommandHarness harness(apply);
      check(harness);
    }
  for (const RoughCheck check : kRough) {
    CommandHarness harness(manners.front().second);
    check(harness);
  }
}

TEST_CASE("power conformance of sakura-phy, over an API of all manners", "[power][conformance][phy]") {
  using Manners = lab::PhyManners;
  const auto is = [](const std::function<void(Manners&)>& change) {
    return [change](testing::PhyBench& bench) { bench.api.change(change); };
  };
  const std::vector<std::pair<const char*, std::function<void(testing::PhyBench&)>>> manners = {
      {"plain", [](testing::PhyBench&) {}},
      {"lags", is([](Manners& m) { m.power_lag = 40 * kSecond; })},
      {"stale lists", is([](Manners& m) { m.list_age = 5 * kMinute; })},
      {"remembers no power state", is([](Manners& m) { m.cache_every = 0; })},
      {"loses answers", is([](Manners& m) { m.lost_answers = 2; })},
      {"loses orders", is([](Manners& m) { m.lost_orders = 1; })},
      {"refuses for another operation", is([](Manners& m) { m.conflicts = 3; })},
      {"throttles", is([](Manners& m) { m.throttled = 1, m.retry_after = 20 * kSecond; })},
      {"a gateway that fails before lists", [](auto& b) { gateway(b, "GET", "/servers/", 2); }},
      {"a gateway that fails before machines", [](auto& b) { gateway(b, "GET", "power_status", 2); }},
      {"hardware that takes no order now", [](auto& b) { gateway(b, "POST", "power_control", 2); }},
  };
  for (const auto& [name, apply] : manners)
    for (const Check check : kSwitches) {
      INFO(name);
      PhyHarness harness(apply);
      check(harness);
    }
  for (const RoughCheck check : kRough) {
    PhyHarness harness(manners.front().second);
    check(harness);
  }
  PhyHarness busy(busy_for_a_minute);
  CHECK(*busy.power().state(kMinute) == PowerState::unknown);
  CHECK(busy.power().on(2 * kMinute).ok());
  PhyHarness silent(is([](Manners& m) { m.unreadable_power = 1; }));
  CHECK(*silent.power().state(kMinute) == PowerState::unknown);
  switches_on_and_off(silent);
}

// What cannot be asked of a driver whose machine is switched by its own system, or by a person: that it says
// so at once, and does not pretend.
TEST_CASE("power conformance of drivers that switch nothing themselves", "[power][conformance][manual]") {
  int such = 0;
  for (const PowerDriver& driver : power_drivers()) {
    if (is_remote(description_of(driver.name).by)) continue;
    INFO(driver.name);
    ++such;
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
