// Our IPMI side against programs of other projects, in pairs. The driver, ipmitool's own verbs and
// freeipmi, each with the other two, on ipmi_sim and on pyghmi's BMC: what one does the others have to see.
// Beside that our stand-in for ipmitool and ipmitool itself, which have to complain alike.
//
// A program that is missing fails its pair: scripts/deps.sh test installs them all.
#include "controller/power/ipmi.h"
#include "controller/power/ipmitool.h"
#include "controller/power/wrap.h"
#include "tests/catch.h"
#include "tests/conformance/power_suite.h"
#include "tests/fakes/fake_ipmitool.h"
#include "tests/fakes/jump_waiter.h"
#include "tests/fakes/pyghmi_bmc.h"

using namespace muster;
using namespace muster::conformance;
using testing::IpmiSim;
using testing::PyghmiBmc;

namespace {

constexpr const char* kGuid = "123456789abcdef0123456789abcdef0";

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
  PyghmiBmc bmc_;
  Waiter waiter_ = testing::jump_waiter();
  std::unique_ptr<Power> power_ =
      with_retries(make_ipmi(target_of(bmc_), waiter_, make_process()), waiter_, 1);
};

Output run(std::vector<std::string> argv, const std::string& package) {
  const auto said =
      make_process()->run({.argv = std::move(argv), .env = {{"IPMITOOL_PASSWORD", IpmiSim::kPassword}}});
  INFO("package " << package << ", which scripts/deps.sh test installs");
  REQUIRE(said.ok());
  return *said;
}

// One of three clients at one BMC. `boots_next`: "network", "cd", or what else it says.
struct Client {
  std::string name;
  std::function<bool()> runs;
  std::function<void(bool on)> turn;
  std::function<std::string()> boots_next;
  std::function<void()> boot_network;  // at the next boot
};

template <typename Bmc>
Client the_driver(const Bmc& bmc) {
  const Waiter waiter = testing::jump_waiter();
  const std::shared_ptr<Power> power =
      with_retries(make_ipmi(target_of(bmc), waiter, make_process()), waiter, 1);
  return {"the driver", [power] { return *power->state(kMinute) == PowerState::on; },
          [power](bool on) { REQUIRE((on ? power->on(kMinute) : power->off(kMinute, false)).ok()); },
          [power] {
            const auto seen = power->describe(kMinute);
            REQUIRE(seen.ok());
            return std::string(seen->at("boots_network_next") == true ? "network" : "something else");
          },
          [power] { REQUIRE(power->boot_once_network(kMinute).ok()); }};
}

// By its own verbs, not by the bytes that the driver has it send.
template <typename Bmc>
Client ipmitool(const Bmc& bmc) {
  const std::string port = bmc.address().substr(bmc.address().rfind(':') + 1);
  const auto say = [port](std::vector<std::string> words) {
    std::vector<std::string> argv = {"ipmitool", "-I", "lanplus",  "-H", "127.0.0.1", "-p",
                                     port,       "-U", Bmc::kUser, "-E", "-C",        "3"};
    argv.insert(argv.end(), words.begin(), words.end());
    const Output said = run(argv, "ipmitool");
    INFO(said.out << said.err);
    REQUIRE(said.ok());
    return said.out;
  };
  return {"ipmitool",
          [say] {
            return say({"chassis", "power", "status"}) == "Chassis Power is on\n";
          },
          [say](bool on) {
            say({"chassis", "power", on ? "on" : "off"});
          },
          [say] {
            const std::string text = say({"chassis", "bootparam", "get", "5"});
            const bool network = text.find("Boot Device Selector : Force PXE") != std::string::npos;
            return std::string(network ? "network" : "something else");
          },
          [say] {
            say({"chassis", "bootdev", "pxe", "options=efiboot"});
          }};
}

Output freeipmi_says(const std::string& program, const std::string& address, const std::string& password,
                     const std::vector<std::string>& words) {
  std::vector<std::string> argv = {program,   "-h", address, "-u", "admin", "-p", password,      "-D",
                                   "LAN_2_0", "-I", "3",     "-l", "ADMIN", "-W", "opensesspriv"};
  argv.insert(argv.end(), words.begin(), words.end());
  return run(argv, "freeipmi-tools");
}

template <typename Bmc>
Client freeipmi(const Bmc& bmc) {
  const auto say = [address = bmc.address()](const std::string& program, std::vector<std::string> words) {
    const Output said = freeipmi_says(program, address, Bmc::kPassword, words);
    INFO(said.out << said.err);
    REQUIRE(said.ok());
    return said.out;
  };
  const std::string device = "Chassis_Boot_Flags:Boot_Device";
  return {
      "freeipmi", [say] { return say("ipmipower", {"--stat"}).find(": on") != std::string::npos; },
      [say](bool on) { CHECK(say("ipmipower", {on ? "--on" : "--off"}).find(": ok") != std::string::npos); },
      [say, device] {
        const std::string text = say("ipmi-chassis-config", {"--checkout", "-e", device});
        const size_t at = text.find("\n\tBoot_Device ");
        REQUIRE(at != std::string::npos);
        const std::string line = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
        return std::string(line.substr(line.rfind(' ') + 1) == "PXE" ? "network" : "something else");
      },
      [say, device] {
        say("ipmi-chassis-config", {"--commit", "-e", device + "=PXE"});
      }};
}

// What one client does, the other sees; both ways round.
template <typename Bmc>
void see_and_switch_the_same_machine(Bmc& bmc, const Client& one, const Client& other) {
  INFO(one.name << " and " << other.name);
  for (const auto& [acts, looks] : {std::pair(&one, &other), std::pair(&other, &one)}) {
    INFO(acts->name << " acts");
    for (const bool on : {true, false}) {
      acts->turn(on);
      CHECK(bmc.runs() == on);
      CHECK(acts->runs() == on);
      CHECK(looks->runs() == on);
    }
    const std::string before = bmc.get("boots");
    CHECK(looks->boots_next() == "something else");
    acts->boot_network();
    CHECK(acts->boots_next() == "network");
    CHECK(looks->boots_next() == "network");
    looks->turn(true);
    CHECK(bmc.get("boots") == before + "n");
    CHECK(looks->boots_next() == "something else");  // once
    looks->turn(false);
  }
}

}  // namespace

TEST_CASE("pair: the driver ipmi and pyghmi's fake BMC", "[power][conformance][ipmi][pair]") {
  for (const auto check : {switches_on_and_off, asking_for_what_holds_is_ok, polite_off_becomes_forced,
                           network_boot_holds_once, a_dead_machine_is_a_timeout, power_cycles_at_once}) {
    PyghmiHarness harness;
    check(harness);
  }
}

TEST_CASE("pairs on ipmi_sim: driver, ipmitool and freeipmi see and switch the same machine",
          "[power][conformance][ipmi][pair]") {
  IpmiSim sim(kGuid);
  see_and_switch_the_same_machine(sim, the_driver(sim), ipmitool(sim));
  see_and_switch_the_same_machine(sim, the_driver(sim), freeipmi(sim));
  see_and_switch_the_same_machine(sim, ipmitool(sim), freeipmi(sim));
}

TEST_CASE("pairs on pyghmi's BMC: driver, ipmitool and freeipmi see and switch the same machine",
          "[power][conformance][ipmi][pair]") {
  PyghmiBmc bmc;
  see_and_switch_the_same_machine(bmc, the_driver(bmc), ipmitool(bmc));
  see_and_switch_the_same_machine(bmc, the_driver(bmc), freeipmi(bmc));
  see_and_switch_the_same_machine(bmc, ipmitool(bmc), freeipmi(bmc));
}

TEST_CASE("pair: freeipmi and the driver come to the same end with a wrong password",
          "[power][conformance][ipmi][pair]") {
  IpmiSim sim(kGuid);
  // What freeipmi has to say stands on standard output.
  CHECK(freeipmi_says("ipmipower", sim.address(), "wrong", {"--stat"}).out.find("password invalid") !=
        std::string::npos);
  PowerTarget wrong = target_of(sim);
  wrong.password = "wrong";
  CHECK(make_ipmi(wrong, testing::jump_waiter(), make_process())->state(kMinute).error().code ==
        Code::denied);
}

// The bit for UEFI cannot be read back from either BMC: what is sent has to be compared.
TEST_CASE("pair: ipmitool's own order for a network boot is the driver's, byte by byte",
          "[power][conformance][ipmi][pair]") {
  IpmiSim sim(kGuid);
  const std::string port = sim.address().substr(sim.address().rfind(':') + 1);
  const Output own = run({"ipmitool", "-vvv", "-I", "lanplus", "-H", "127.0.0.1", "-p", port, "-U", "admin",
                          "-E", "-C", "3", "chassis", "bootdev", "pxe", "options=efiboot"},
                         "ipmitool");
  CHECK((own.out + own.err).find("data    : 0x05 0xa0 0x04 0x00 0x00 0x00") != std::string::npos);
  const auto bmc = std::make_shared<testing::FakeIpmitool>();
  PowerTarget target = target_of(sim);
  target.password = bmc->password;
  REQUIRE(make_ipmi(target, bmc->waiter(), bmc)->boot_once_network(kMinute).ok());
  CHECK(bmc->orders.back() == "000805a004000000");
}

TEST_CASE("pair: our stand-in for ipmitool answers and complains as ipmitool does",
          "[power][conformance][ipmi][pair]") {
  IpmiSim sim(kGuid);
  const auto alike = [&](const PowerTarget& at, const std::vector<IpmiBytes>& commands, bool nobody = false) {
    const auto fake = std::make_shared<testing::FakeIpmitool>();
    fake->password = IpmiSim::kPassword;
    fake->suites = {3};
    fake->shows_valid = fake->shows_uefi = false;
    fake->lost_sessions = nobody ? 100 : 0;
    IpmiTool ours(at, fake->waiter(), fake), real(at, testing::jump_waiter(), make_process());
    ours.begin(kMinute);
    real.begin(kMinute);
    const auto one = ours.request(commands), other = real.request(commands);
    CHECK(one.ok() == other.ok());
    if (!one.ok() && !other.ok()) CHECK(one.error().code == other.error().code);
    CHECK(ours.refusal().command == real.refusal().command);
    CHECK(ours.refusal().completion == real.refusal().completion);
    CHECK(ours.suite() == real.suite());
    if (!one.ok() || !other.ok()) return one.ok() ? IpmiBytes{} : IpmiBytes{0xff};
    CHECK(one->size() == other->size());
    CHECK(one->back() == other->back());
    return other->back();
  };
  PowerTarget at = target_of(sim);
  CHECK(hex_of(alike(at, {{0x06, 0x37}})) == kGuid);
  CHECK(alike(at, {{0x06, 0x37}, {0x00, 0x01}}).front() % 2 == 0);
  CHECK(hex_of(alike(at, {{0x00, 0x08, 0x05, 0xa0, 0x04, 0, 0, 0}, {0x00, 0x09, 0x05, 0, 0}})) ==
        "01050004000000");
  CHECK(alike(at, {{0x00, 0x7e}}) == IpmiBytes{0xff});  // no such command
  at.cipher_suite = 17;
  CHECK(alike(at, {{0x00, 0x01}}) == IpmiBytes{0xff});
  at = target_of(sim);
  at.password = "wrong";
  CHECK(alike(at, {{0x00, 0x01}}) == IpmiBytes{0xff});
  at = target_of(sim);
  at.user = "nobody";
  CHECK(alike(at, {{0x00, 0x01}}) == IpmiBytes{0xff});
  at = target_of(sim);
  at.address = "127.0.0.1:" + std::to_string(testing::free_port(SOCK_DGRAM));
  CHECK(alike(at, {{0x00, 0x01}}, true) == IpmiBytes{0xff});
}
