// Field cases of IPMI: what ipmitool 1.8.19 writes about BMCs that have the right password and do not say so.
// The same over a real wire, with the real programs: tests/field/bmc/on_wire.sh.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "base/json.h"
#include "controller/power/ipmi.h"
#include "controller/power/logins.h"
#include "controller/power/wrap.h"
#include "controller/spec/reader/parse_spec.h"
#include "controller/spec/spec.h"
#include "tests/fakes/fake_ipmitool.h"
#include "tests/fakes/ipmi_sim.h"
#include "tests/field/case.h"
#include "tests/source_dir.h"

namespace muster::tests {
namespace {

using testing::FakeIpmitool;
using Call = FakeIpmitool::Call;

constexpr DurationMs kCall = kMinute;
const std::string kEnd = "Error: Unable to establish IPMI v2 / RMCP+ session\n";

// A BMC, and what the controller knows of it between calls: each power() is a call of its own.
struct Bench {
  std::shared_ptr<FakeIpmitool> bmc = std::make_shared<FakeIpmitool>();
  PowerTarget target;
  int refusals = 0;

  Bench() {
    target.node = "gpu01";
    target.address = "10.20.1.11";
    target.user = bmc->user;
    target.password = bmc->password;
    target.on_refused = [this] { ++refusals; };
    target.logins = std::make_shared<Logins>(bmc->waiter().now);
  }
  std::unique_ptr<Power> power() {
    return with_retries(make_ipmi(target, bmc->waiter(), bmc), bmc->waiter(), 7);
  }
  void complains(const std::string& text, std::function<bool(const Call&)> when) {
    bmc->complains = [text, when = std::move(when)](const Call& call) { return when(call) ? text : ""; };
  }
  Code state_code() {
    const auto state = power()->state(kCall);
    REQUIRE_FALSE(state.ok());
    return state.error().code;
  }
  // Nothing counts against the password.
  bool trusts() const { return refusals == 0 && !target.logins->find(target) && target.logins->took(target); }
  long calls(const std::string& with) const {
    return std::count_if(bmc->arguments.begin(), bmc->arguments.end(),
                         [&](const std::string& line) { return line.find(with) != std::string::npos; });
  }
};

auto first(size_t calls) {
  return [calls](const Call& call) { return call.number <= calls; };
}

auto with_suite(int suite) {
  return [suite](const Call& call) { return call.suite == suite; };
}

ParsedSpec spec_of(const std::string& name) {
  return parse_spec(field_input(name, "spec.yaml"), {{"base"}, {}, {KnownRecipe{"debian-12"}}});
}

}  // namespace

// ---- no answer

FIELD_CASE("ipmi-slow-answers") {
  Bench b;
  b.complains(field_input("ipmi-slow-answers", "complaint.txt"),
              [](const Call& call) { return call.seconds < 2; });
  CHECK(b.power()->state(kCall).ok());
  CHECK(b.trusts());
  CHECK(b.power()->state(kCall).ok());
  CHECK(b.calls("-N 1 ") == 1);
}

FIELD_CASE("ipmi-rakp-lost: at a look") {
  const std::string text = field_input("ipmi-rakp-lost", GENERATE("rakp2.txt", "rakp4.txt"));
  Bench b;
  b.complains(text, first(1));
  CHECK(b.power()->state(kCall).ok());
  CHECK(b.trusts());
  b.complains(text, [](const Call&) { return true; });
  CHECK(b.state_code() == Code::unavailable);
  CHECK(b.trusts());
}

FIELD_CASE("ipmi-rakp-lost: behind a power-off") {
  Bench b;
  b.bmc->machine.start();
  b.bmc->machine.boot();
  // The look, the order, and then the BMC is busy.
  b.complains(field_input("ipmi-rakp-lost", "rakp2.txt"),
              [](const Call& call) { return call.number == 3 || call.number == 4; });
  CHECK(b.power()->off(kCall, false).ok());
  CHECK_FALSE(b.bmc->machine.running());
  CHECK(b.trusts());
}

// ---- answers that speak of something else

FIELD_CASE("ipmi-inactive-session-id") {
  std::istringstream statuses(field_input("ipmi-inactive-session-id", "statuses.txt"));
  int tried = 0;
  for (std::string status; std::getline(statuses, status); ++tried) {
    CAPTURE(status);
    const std::string text = "RAKP 2 message indicates an error : " + status + "\n" + kEnd;
    Bench b;
    b.target.cipher_suite = 3;
    b.complains(text, first(2));
    CHECK(b.power()->state(kCall).ok());
    CHECK(b.trusts());
    b.complains(text, [](const Call&) { return true; });
    CHECK(b.state_code() == Code::unavailable);
    CHECK(b.trusts());
  }
  CHECK(tried == 3);
}

FIELD_CASE("ipmi-suite17-silent: always") {
  Bench b;
  b.complains(field_input("ipmi-suite17-silent", "complaint.txt"), with_suite(17));
  const auto seen = b.power()->describe(kCall);
  REQUIRE(seen.ok());
  CHECK(seen->at("cipher_suite") == 3);
  CHECK(b.trusts());
  CHECK(b.power()->state(kCall).ok());
  CHECK(b.calls("-C 17 ") == 1);
}

FIELD_CASE("ipmi-suite17-silent: the complaint once") {
  Bench b;
  b.target.cipher_suite = GENERATE(0, 17);
  b.complains(field_input("ipmi-suite17-silent", "complaint.txt"), first(1));
  CHECK(b.power()->state(kCall).ok());
  CHECK(b.trusts());
}

FIELD_CASE("ipmi-suite17-invalid-role") {
  const std::string text = field_input("ipmi-suite17-invalid-role", "complaint.txt");
  Bench b;
  b.complains(text, with_suite(17));
  CHECK(b.power()->state(kCall).ok());
  CHECK(b.trusts());

  Bench both;
  both.complains(text, [](const Call&) { return true; });
  CHECK(both.state_code() == Code::denied);
  CHECK(both.refusals == 0);
  CHECK(both.bmc->arguments.size() == 2);
}

FIELD_CASE("ipmi-privilege-once") {
  Bench b;
  b.target.cipher_suite = GENERATE(0, 3);
  b.complains(field_input("ipmi-privilege-once", GENERATE("lost.txt", "refused.txt")), first(1));
  CHECK(b.power()->state(kCall).ok());
  CHECK(b.trusts());
}

// Neither is a sign against a suite, or the password.
void tries_a_passing_refusal(const std::string& name) {
  Bench b;
  b.complains(field_input(name, "complaint.txt"), first(3));
  CHECK(b.power()->state(kCall).ok());
  CHECK(b.trusts());
  CHECK(b.target.logins->suite(b.target) == 0);  // 17 stays the first
}

FIELD_CASE("ipmi-sessions-full") { tries_a_passing_refusal("ipmi-sessions-full"); }
FIELD_CASE("ipmi-duplicate-answers") { tries_a_passing_refusal("ipmi-duplicate-answers"); }

FIELD_CASE("ipmi-no-suite-match") {
  Bench b;
  b.complains(field_input("ipmi-no-suite-match", "complaint.txt"), with_suite(17));
  CHECK(b.power()->state(kCall).ok());
  CHECK(b.trusts());
}

// ---- rights, and values of the spec

FIELD_CASE("ipmi-operator-account: the level is the spec's") {
  Bench b;
  b.complains(field_input("ipmi-operator-account", "complaint.txt"),
              [](const Call& call) { return call.level == "ADMINISTRATOR"; });
  const auto refused = b.power()->state(kCall);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Code::denied);
  CHECK(refused.error().message.find("power.privilege") != std::string::npos);
  CHECK(b.bmc->arguments.size() == 2);
  CHECK(b.state_code() == Code::denied);
  CHECK(b.bmc->arguments.size() == 2);  // and the account is not locked
  b.target.as_operator = true;
  CHECK(b.power()->on(kCall).ok());
  CHECK(b.bmc->machine.running());
}

FIELD_CASE("ipmi-operator-account: as it stands in a spec") {
  const auto parsed = spec_of("ipmi-operator-account");
  for (const SpecError& error : parsed.errors) UNSCOPED_INFO(to_string(error, "spec.yaml"));
  REQUIRE(parsed.errors.empty());
  CHECK(parsed.spec.nodes.front().power.privilege == "operator");
  for (const auto& [from, to] :
       {std::pair("privilege: operator", "privilege: root"), std::pair("driver: ipmi", "driver: redfish")}) {
    std::string text = field_input("ipmi-operator-account", "spec.yaml");
    text.replace(text.find(from), std::string(from).size(), to);
    const auto errors = parse_spec(text, {{"base"}, {}, {KnownRecipe{"debian-12"}}}).errors;
    REQUIRE(errors.size() == 1);
    CHECK(to_string(errors.front(), "spec.yaml").find("privilege") != std::string::npos);
  }
}

FIELD_CASE("ipmi-suite12-aborts") {
  const auto errors = spec_of("ipmi-suite12-aborts").errors;
  REQUIRE(errors.size() == 1);
  CHECK(to_string(errors.front(), "spec.yaml").find("cipher_suite") != std::string::npos);
}

// ---- the real programs

namespace {

// tests/field/bmc/wire.py before a BMC.
class BadWire {
 public:
  BadWire(int bmc_port, const std::string& rules) {
    const std::string program = source_dir() + "/tests/field/bmc/wire.py", from = std::to_string(port_),
                      to = std::to_string(bmc_port);
    int out[2];
    REQUIRE(pipe(out) == 0);
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(out[1], 1);
      execlp("python3", "python3", program.c_str(), from.c_str(), to.c_str(), rules.c_str(), nullptr);
      _exit(127);
    }
    close(out[1]);
    char c = 0;
    const bool carries = read(out[0], &c, 1) == 1;
    close(out[0]);
    REQUIRE(carries);
  }
  ~BadWire() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  BadWire(const BadWire&) = delete;
  BadWire& operator=(const BadWire&) = delete;
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  const int port_ = testing::free_port(SOCK_DGRAM);
  pid_t pid_ = 0;
};

}  // namespace

// In real time, up to a minute for each form: tests/field/run.sh runs it by way of a case's try.sh.
TEST_CASE("ipmi: the driver, ipmitool and ipmi_sim over the wire of MUSTER_FIELD_CASE", "[.ipmi-wire]") {
  const char* name = std::getenv("MUSTER_FIELD_CASE");
  REQUIRE(name != nullptr);
  const Json forms = Json::parse(field_input(name, "wire.json"));
  for (const Json& form : forms) {
    CAPTURE(form.dump());
    testing::IpmiSim sim("123456789abcdef0123456789abcdef0");
    const bool off = form.at("call") == "off";
    if (off) sim.set("power", "1");
    const BadWire wire(std::stoi(sim.address().substr(sim.address().rfind(':') + 1)), form.dump());
    PowerTarget target;
    target.node = "gpu01";
    target.address = wire.address();
    target.user = testing::IpmiSim::kUser;
    target.password = testing::IpmiSim::kPassword;
    target.cipher_suite = form.value("cipher_suite", 0);
    target.logins = std::make_shared<Logins>(real_waiter().now);
    int refusals = 0;
    target.on_refused = [&] { ++refusals; };
    const auto power = with_retries(make_ipmi(target, real_waiter(), make_process()), real_waiter(), 7);
    if (off) {
      CHECK(power->off(kCall, false).ok());
      CHECK_FALSE(sim.runs());
    } else {
      const auto state = power->state(kCall);
      INFO((state.ok() ? "" : state.error().message));
      CHECK(state.ok());
    }
    CHECK(refusals == 0);
    CHECK_FALSE(target.logins->find(target));
  }
}

FIELD_CASE("ipmi-suite17-codes-wrong") {
  Bench b;
  b.complains(field_input("ipmi-suite17-codes-wrong", "complaint.txt") + kEnd, with_suite(17));
  CHECK(b.power()->state(kCall).ok());
  CHECK(b.trusts());
  const long refused = b.calls("-C 17 ");
  CHECK(b.power()->state(kCall).ok());
  CHECK(b.calls("-C 17 ") == refused);
  CHECK(b.trusts());
}

}  // namespace muster::tests
