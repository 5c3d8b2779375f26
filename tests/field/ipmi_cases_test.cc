// BMCs that speak IPMI, as the program ipmitool 1.8.19 tells of them.
#include <functional>

#include "controller/power/ipmi.h"
#include "controller/power/ipmitool.h"
#include "controller/power/logins.h"
#include "controller/power/wrap.h"
#include "controller/spec/spec.h"
#include "tests/fakes/fake_ipmitool.h"
#include "tests/field/case.h"

namespace muster::tests {

namespace {

constexpr DurationMs kCall = 3 * kMinute;
const std::string kEnd = "Error: Unable to establish IPMI v2 / RMCP+ session\n";
// ipmitool's words for silence: four times, and then what it makes of it.
const std::string kNoAnswerRakp1 = "> Error: no response from RAKP 1 message\n",
                  kNoAnswerRakp3 = "> Error: no response from RAKP 3 message\n";
const std::string kPrivilegeFailed = "Set Session Privilege Level to ADMINISTRATOR failed\n";

// A session that the BMC, or the wire, spoils; nothing: it is as the BMC behind it is.
struct Call {
  int number = 0, suite = 0, seconds_per_answer = 0;
  std::string privilege = {};
};
using Spoiled = std::function<std::optional<std::string>(const Call&)>;

class Wire : public Process {
 public:
  testing::FakeIpmitool bmc;
  Spoiled spoiled = [](const Call&) { return std::nullopt; };
  std::vector<Call> calls = {};

  Result<Output> run(const Command& command) override {
    const auto after = [&](const std::string& flag) {
      for (size_t i = 0; i + 1 < command.argv.size(); ++i)
        if (command.argv[i] == flag) return command.argv[i + 1];
      return std::string();
    };
    calls.push_back({static_cast<int>(calls.size()) + 1, std::atoi(after("-C").c_str()),
                     std::atoi(after("-N").c_str()), after("-L")});
    if (const auto said = spoiled(calls.back())) return Output{1, "", *said + kEnd};
    return bmc.run(command);
  }
};

struct Bench {
  std::shared_ptr<Wire> wire = std::make_shared<Wire>();
  PowerTarget target;
  int refusals = 0;
  Bench() {
    target.node = "gpu01";
    target.address = "10.20.1.11";
    target.user = wire->bmc.user;
    target.password = wire->bmc.password;
    target.on_refused = [this] { ++refusals; };
  }
  std::unique_ptr<Power> power() { return make_ipmi(target, wire->bmc.waiter(), wire); }
};

// The first `times` sessions end so.
Spoiled first(int times, const std::string& said) {
  return
      [times, said](const Call& call) { return call.number <= times ? std::optional(said) : std::nullopt; };
}

}  // namespace

FIELD_CASE("ipmi-slow-answers") {
  Bench bench;  // the second answer comes while the first is on its way, and has another random number
  bench.wire->spoiled = [](const Call& call) {
    return call.seconds_per_answer < 2 ? std::optional<std::string>("> RAKP 2 HMAC is invalid\n")
                                       : std::nullopt;
  };
  const auto power = bench.power();
  CHECK(power->state(kCall).ok());
  CHECK(bench.refusals == 0);
  const size_t calls = bench.wire->calls.size();
  CHECK(power->state(kCall).ok());
  CHECK(bench.wire->calls.size() == calls + 1);  // from then on with time
}

FIELD_CASE("ipmi-rakp-lost") {
  for (const std::string& lost : {kNoAnswerRakp1, kNoAnswerRakp3}) {
    Bench bench;
    bench.wire->spoiled = first(2, lost + lost + lost + lost + kPrivilegeFailed);
    const auto seen = bench.power()->state(kCall);
    CHECK(seen.error().code == Code::unavailable);
    CHECK(bench.refusals == 0);
    CHECK(bench.power()->state(kCall).ok());
  }
  // Between the power-off and the look after it.
  Bench bench;
  bench.wire->bmc.machine.start();
  bench.wire->spoiled = [](const Call& call) {
    return call.number == 3 || call.number == 4 ? std::optional(kNoAnswerRakp1 + kPrivilegeFailed)
                                                : std::nullopt;
  };
  CHECK(bench.power()->off(kCall, false).ok());
  CHECK_FALSE(bench.wire->bmc.machine.running());
  CHECK(bench.refusals == 0);
}

FIELD_CASE("ipmi-inactive-session-id") {
  for (const char* status : {"inactive session ID", "illegal parameter", "invalid session ID"}) {
    CAPTURE(status);
    Bench bench;
    bench.wire->bmc.suites = {3};
    bench.target.cipher_suite = 3;
    bench.wire->spoiled = first(2, std::string("RAKP 2 message indicates an error : ") + status + "\n");
    CHECK(bench.power()->state(kCall).ok());
    CHECK(bench.refusals == 0);
    // Without end it is a BMC that cannot be read, and still no wrong password.
    bench.wire->spoiled = first(1000, std::string("RAKP 2 message indicates an error : ") + status + "\n");
    CHECK(bench.power()->state(kCall).error().code == Code::unavailable);
    CHECK(bench.refusals == 0);
  }
}

FIELD_CASE("ipmi-suite17-silent") {
  Bench bench;
  bench.wire->spoiled = [](const Call& call) {
    return call.suite == 17 ? std::optional(kPrivilegeFailed) : std::nullopt;
  };
  CHECK(bench.power()->state(kCall).ok());
  CHECK(bench.wire->calls.back().suite == 3);
  CHECK(bench.refusals == 0);
  // The same words once, whatever the cause.
  bench.target.cipher_suite = 3;
  bench.wire->calls.clear();
  bench.wire->spoiled = first(1, kPrivilegeFailed);
  CHECK(bench.power()->state(kCall).error().code == Code::unavailable);
  CHECK(bench.power()->state(kCall).ok());
}

FIELD_CASE("ipmi-suite17-invalid-role") {
  Bench bench;
  bench.wire->spoiled = [](const Call& call) {
    return call.suite == 17
               ? std::optional<std::string>("Error in open session response message : invalid role\n\n")
               : std::nullopt;
  };
  CHECK(bench.power()->state(kCall).ok());
  CHECK(bench.refusals == 0);
  // With both it is what it says, and no matter of the password.
  bench.wire->spoiled = first(1000, "Error in open session response message : invalid role\n\n");
  CHECK(bench.power()->state(kCall).error().code == Code::denied);
  CHECK(bench.refusals == 0);
}

// What another call learned counts: a BMC that took the password a moment ago is not one that refuses it.
FIELD_CASE("ipmi-slow-answers: a memory that outlives the call") {
  Bench bench;
  bench.target.logins = std::make_shared<Logins>(bench.wire->bmc.waiter().now);
  REQUIRE(bench.power()->state(kCall).ok());
  bench.wire->spoiled = first(1000, "> RAKP 2 HMAC is invalid\n");
  CHECK(bench.power()->state(kCall).error().code == Code::unavailable);
  // Two failed logins, and no third in the next ten minutes.
  REQUIRE(bench.target.logins->find(bench.target));
  CHECK(bench.target.logins->find(bench.target)->code == Code::unavailable);
  // Never let in: refused.
  Bench stranger;
  stranger.target.logins = std::make_shared<Logins>(stranger.wire->bmc.waiter().now);
  stranger.target.password = "wrong";
  CHECK(stranger.power()->state(kCall).error().code == Code::denied);
  CHECK(stranger.wire->bmc.failed_logins == 2);
}

FIELD_CASE("ipmi-operator-account") {
  Bench bench;
  const auto operators_only = [](const Call& call) {
    return call.privilege == "OPERATOR"
               ? std::nullopt
               : std::optional<std::string>("RAKP 2 message indicates an error : unauthorized name\n");
  };
  bench.wire->spoiled = operators_only;
  const auto refused = bench.power()->state(kCall);
  CHECK(refused.error().code == Code::denied);
  CHECK(refused.error().message.find("power.privilege") != std::string::npos);
  bench.target.privilege = "OPERATOR";
  CHECK(bench.power()->state(kCall).ok());
}

}  // namespace muster::tests
