// The ipmi driver's own refusals, over a BMC that misbehaves and over ipmi_sim.
#include "controller/power/ipmi.h"

#include "controller/power/logins.h"
#include "controller/power/wrap.h"
#include "tests/catch.h"
#include "tests/fakes/fake_ipmitool.h"
#include "tests/fakes/ipmi_sim.h"
#include "tests/fakes/jump_waiter.h"

using namespace muster;

namespace {

constexpr DurationMs kCall = kMinute;
constexpr const char* kGuid = "123456789abcdef0123456789abcdef0";
constexpr const char* kUuid = "12345678-9abc-def0-1234-56789abcdef0";

struct Bench {
  std::shared_ptr<testing::FakeIpmitool> bmc = std::make_shared<testing::FakeIpmitool>();
  PowerTarget target;
  std::string pin;
  int refusals = 0;

  Bench() {
    target.node = "gpu01";
    target.address = "10.20.1.11:6230";
    target.user = bmc->user;
    target.password = bmc->password;
    target.on_pin = [this](const std::string& learned) { pin = learned; };
    target.on_refused = [this] { ++refusals; };
  }
  std::unique_ptr<Power> power() { return make_ipmi(target, bmc->waiter(), bmc); }
  Code state_code() {
    const auto state = power()->state(kCall);
    REQUIRE_FALSE(state.ok());
    return state.error().code;
  }
};

size_t count(const std::vector<std::string>& list, const std::string& one) {
  return static_cast<size_t>(std::count(list.begin(), list.end(), one));
}

}  // namespace

TEST_CASE("the password is in no argument", "[power][ipmi]") {
  Bench bench;
  auto power = bench.power();
  REQUIRE(boot_from_network(*power, kCall).ok());
  REQUIRE_FALSE(bench.bmc->arguments.empty());
  for (const auto& line : bench.bmc->arguments) CHECK(line.find(bench.bmc->password) == std::string::npos);
  CHECK(bench.bmc->arguments.front().find("-H 10.20.1.11 -p 6230") != std::string::npos);
}

TEST_CASE("a wrong password is two failed logins, the second with more time and the other suite",
          "[power][ipmi]") {
  Bench bench;
  bench.target.password = "wrong";
  auto retried = with_retries(bench.power(), bench.bmc->waiter(), 1);
  for (int i = 0; i < 3; ++i) {
    const auto state = retried->state(kCall);
    REQUIRE_FALSE(state.ok());
    CHECK(state.error().code == Code::denied);
  }
  CHECK(bench.bmc->failed_logins == 2);
  CHECK(bench.refusals == 1);
  REQUIRE(bench.bmc->arguments.size() == 2);
  CHECK(bench.bmc->arguments[0].find("-C 17 -L ADMINISTRATOR -N 1") != std::string::npos);
  CHECK(bench.bmc->arguments[1].find("-C 3 -L ADMINISTRATOR -N 5") != std::string::npos);
  CHECK(bench.bmc->times[1] - bench.bmc->times[0] >= 10 * kSecond);
  bench.target.user = "nobody";
  CHECK(bench.state_code() == Code::denied);
  CHECK(bench.bmc->failed_logins == 4);
}

TEST_CASE("what the BMC took a moment ago is not called a wrong password, and is not tried for ever",
          "[power][ipmi]") {
  Bench bench;
  bench.target.logins = std::make_shared<Logins>(bench.bmc->waiter().now);
  REQUIRE(bench.power()->state(kCall).ok());
  bench.bmc->password = "changed";
  for (int i = 0; i < 3; ++i)
    CHECK(with_retries(bench.power(), bench.bmc->waiter(), 1)->state(kCall).error().code ==
          Code::unavailable);
  CHECK(bench.bmc->failed_logins == 2);
  CHECK(bench.refusals == 0);
}

TEST_CASE("a command whose level is missing once is given again", "[power][ipmi]") {
  Bench bench;
  bench.bmc->refuses_level = 1;
  CHECK(bench.power()->state(kCall).ok());
  bench.bmc->refuses_level = 2;
  CHECK(bench.state_code() == Code::denied);
}

TEST_CASE("a secret that IPMI cannot hold is refused before it is sent", "[power][ipmi]") {
  Bench bench;
  bench.target.password = "twenty-one-characters";
  CHECK(bench.state_code() == Code::invalid);
  CHECK(bench.bmc->arguments.empty());
}

TEST_CASE("cipher suite 17 is tried before 3, and only the one that the spec names", "[power][ipmi]") {
  Bench bench;
  bench.bmc->suites = {3};
  auto power = bench.power();
  REQUIRE(power->state(kCall).ok());
  REQUIRE(power->state(kCall).ok());
  REQUIRE(bench.bmc->arguments.size() == 3);
  CHECK(bench.bmc->times[1] == bench.bmc->times[0]);
  CHECK(bench.bmc->arguments[0].find("-C 17") != std::string::npos);
  CHECK(bench.bmc->arguments[2].find("-C 3") != std::string::npos);
  CHECK(power->describe(kCall)->at("cipher_suite") == 3);
  bench.target.cipher_suite = 17;
  CHECK(bench.state_code() == Code::invalid);
}

// Without suite 17, whose codes they compute wrongly.
TEST_CASE("where one login with suite 17 was rejected, the next call begins with 3",
          "[power][ipmi][doctor]") {
  Bench bench;
  bench.bmc->complains = [&bmc = *bench.bmc](const testing::FakeIpmitool::Call& call) -> std::string {
    if (call.suite != 17) return "";
    ++bmc.failed_logins;
    return "> RAKP 2 HMAC is invalid\nError: Unable to establish IPMI v2 / RMCP+ session\n";
  };
  bench.target.logins = std::make_shared<Logins>(bench.bmc->waiter().now);
  bench.target.one_login = true;
  CHECK(bench.state_code() == Code::denied);
  REQUIRE(bench.bmc->arguments.size() == 1);
  SECTION("the doctor again") {}
  SECTION("another call") { bench.target.one_login = false; }
  SECTION("after another password, which was wrong") {
    // Then of the declared one a single login is allowed.
    bench.target.one_login = false;
    PowerTarget wrong = bench.target;
    wrong.password = "wrong";
    CHECK(make_ipmi(wrong, bench.bmc->waiter(), bench.bmc)->state(kCall).error().code == Code::denied);
    bench.bmc->arguments.resize(1);
    bench.bmc->failed_logins = 1;
  }
  CHECK(bench.power()->state(kCall).ok());
  REQUIRE(bench.bmc->arguments.size() == 2);
  CHECK(bench.bmc->arguments[1].find("-C 3 ") != std::string::npos);
  CHECK(bench.bmc->failed_logins == 1);
  CHECK(bench.target.logins->suite(bench.target) == 3);
}

TEST_CASE("a BMC that is not there is unavailable, and its account is not touched", "[power][ipmi]") {
  Bench bench;
  bench.bmc->lost_sessions = 100;
  CHECK(bench.state_code() == Code::unavailable);
  CHECK(bench.refusals == 0);
}

TEST_CASE("the GUID is learned on first use, and a changed one is not touched", "[power][ipmi]") {
  Bench bench;
  REQUIRE(bench.power()->state(kCall).ok());
  CHECK(bench.pin == std::string("guid:") + kGuid);
  bench.target.pin_sha256 = bench.pin;
  REQUIRE(bench.power()->on(kCall).ok());
  bench.bmc->guid[15] ^= 1;
  CHECK(bench.state_code() == Code::denied);
  CHECK(bench.power()->off(kCall, false).error().code == Code::denied);
  CHECK(bench.power()->boot_once_network(kCall).error().code == Code::denied);
  CHECK(bench.bmc->machine.running());
  bench.bmc->knows_guid = false;  // neither is one that shows none any more
  CHECK(bench.power()->off(kCall, false).error().code == Code::denied);
  CHECK(bench.bmc->machine.running());
  CHECK(count(bench.bmc->orders, "0020") == 0);
}

TEST_CASE("the GUID is compared with the node's machine in each order of bytes", "[power][ipmi]") {
  Bench bench;
  bench.target.expected_uuid = kUuid;
  const auto learned = [&](const testing::FakeIpmitool::Bytes& guid) {
    bench.bmc->guid = guid;
    bench.pin.clear();
    return bench.power()->state(kCall).ok() && !bench.pin.empty();
  };
  const testing::FakeIpmitool::Bytes printed = bench.bmc->guid;
  CHECK(learned(printed));
  CHECK(learned(
      {0x78, 0x56, 0x34, 0x12, 0xbc, 0x9a, 0xf0, 0xde, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0}));
  CHECK(learned({printed.rbegin(), printed.rend()}));
  auto other = printed;
  other[3] ^= 1;
  CHECK_FALSE(learned(other));
  // The operator's word, or what was pinned before the machine was known.
  bench.target.pin_sha256 = "guid:123456799abcdef0123456789abcdef0";
  CHECK(bench.power()->state(kCall).ok());
  bench.target.pin_sha256 = "sha256:" + std::string(64, 'a');  // the node had a Redfish BMC before
  CHECK(bench.state_code() == Code::denied);
}

TEST_CASE("a BMC that shows another node's machine is not touched for a node never seen", "[power][ipmi]") {
  Bench bench;
  Machines machines;
  machines.bind(kUuid, "gpu07");
  bench.target.machines = std::make_shared<const Machines>(machines);
  CHECK(bench.power()->on(kCall).error().code == Code::denied);
  CHECK_FALSE(bench.bmc->machine.running());
  CHECK(bench.pin.empty());
  bench.bmc->guid =
      testing::FakeIpmitool::Bytes(16, 0);  // a placeholder identifies no BMC, and is not pinned
  CHECK(bench.power()->on(kCall).ok());
  CHECK(bench.pin.empty());
}

TEST_CASE("boot flags are for UEFI, once, and read back before power-on", "[power][ipmi]") {
  Bench bench;
  auto power = bench.power();
  REQUIRE(power->boot_once_network(kCall).ok());
  CHECK(count(bench.bmc->orders, "000805a004000000") == 1);
  REQUIRE(power->on(kCall).ok());
  CHECK(bench.bmc->boots() == "n");

  Bench liar;
  liar.bmc->forgets_boot = true;
  CHECK(liar.power()->boot_once_network(kCall).error().code == Code::failed);
  CHECK_FALSE(boot_from_network(*liar.power(), kCall).ok());
  CHECK_FALSE(liar.bmc->machine.running());

  Bench refuses;
  refuses.bmc->refuses_boot = true;
  CHECK(refuses.power()->boot_once_network(kCall).error().code == Code::invalid);
}

TEST_CASE("boot flags that expired are set again before the machine is switched on", "[power][ipmi]") {
  for (const bool keeps : {false, true}) {
    Bench bench;
    bench.bmc->keeps_flags = keeps;
    auto power = bench.power();
    REQUIRE(power->boot_once_network(kCall).ok());
    bench.bmc->clock += 5 * kMinute;
    REQUIRE(power->on(kCall).ok());
    CHECK(bench.bmc->boots() == "n");
    CHECK(count(bench.bmc->orders, "000805a004000000") == (keeps ? 1 : 2));
  }
}

TEST_CASE("sessions of one call are five seconds apart", "[power][ipmi]") {
  Bench bench;
  REQUIRE(boot_from_network(*bench.power(), kCall).ok());
  const auto& times = bench.bmc->times;
  REQUIRE(times.size() > 4);
  for (size_t i = 1; i < times.size(); ++i) CHECK(times[i] - times[i - 1] >= 5 * kSecond);
}

TEST_CASE("what is no answer is none: text, half bytes, megabytes", "[power][ipmi]") {
  for (const std::string& babble :
       {std::string("Chassis Power is on\n"), std::string(" 0\n"), std::string(3000, '0') + "\n",
        std::string("\n"), std::string("\xff\xfe\n")}) {
    Bench bench;
    bench.bmc->babble = babble;
    auto power = bench.power();
    CHECK_FALSE(power->state(kCall).ok());
    CHECK_FALSE(power->on(kCall).ok());
    CHECK_FALSE(power->boot_once_network(kCall).ok());
    CHECK(bench.bmc->orders.empty());
  }
}

TEST_CASE("the real ipmitool tells a wrong password from a BMC that is not there", "[power][ipmi]") {
  testing::IpmiSim sim(kGuid);
  const Waiter waiter = testing::jump_waiter();
  PowerTarget target;
  target.node = "gpu01";
  target.address = sim.address();
  target.user = sim.kUser;
  target.password = sim.kPassword;
  int refusals = 0;
  std::string pin;
  target.on_refused = [&] { ++refusals; };
  target.on_pin = [&](const std::string& learned) { pin = learned; };
  const auto state = [&] { return make_ipmi(target, waiter, make_process())->state(kCall); };
  REQUIRE(state().ok());
  CHECK(pin == std::string("guid:") + kGuid);
  target.password = "wrong";
  CHECK(state().error().code == Code::denied);
  CHECK(refusals == 1);
  target.user = "nobody";
  CHECK(state().error().code == Code::denied);
  CHECK(refusals == 2);
  target.user = sim.kUser;
  target.password = sim.kPassword;
  target.cipher_suite = 17;
  CHECK(state().error().code == Code::invalid);
  target.cipher_suite = 0;
  const auto seen = make_ipmi(target, waiter, make_process())->describe(kCall);
  REQUIRE(seen.ok());
  CHECK(seen->at("cipher_suite") == 3);
  target.pin_sha256 = pin;
  sim.replace("ffffffff9abcdef0123456789abcdef0");
  CHECK(state().error().code == Code::denied);
  CHECK(refusals == 2);
}
