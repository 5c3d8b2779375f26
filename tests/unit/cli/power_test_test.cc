// muster power test, over drivers that keep their contract and ones that do not.
#include "cli/power_test.h"

#include "tests/catch.h"

using namespace muster;
using namespace muster::cli;

namespace {

// A machine behind an API: keeps the contract unless a test disables that.
struct Machine {
  std::string power = "off";
  std::string broken = "";  // the verb that fails
  bool network_switches = false, off_lies = false, deaf = false, allowed = true;
  bool network_never = false, refuses_network = true;  // says that it cannot; and does not
  bool tells_next = false, forgets_network = false, next_network = false;
  std::string described = "";  // its power, where that is not the machine's
  std::vector<std::string> calls;
  int requested = 0;

  PowerTestHooks hooks() {
    return {[this](const std::string& verb) { return call(verb); }, [] { return TimeMs{0}; },
            [this] {
              ++requested;
              return allowed;
            },
            [](const Json&) {}};
  }
  Result<Json> call(const std::string& verb) {
    calls.push_back(verb);
    if (verb == broken) return fail(Code::unavailable, "the BMC does not answer");
    if (verb == "describe" && network_never) return Json{{"driver", "sakura-phy"}, {"network_boot", false}};
    if (verb == "describe") return describe();
    if (verb == "network-once" && network_never && refuses_network)
      return fail(Code::invalid, "it cannot boot from the network");
    if (verb == "on") power = "on", next_network = false;
    if ((verb == "off" && !off_lies) || (verb == "shut-down" && !deaf)) power = "off";
    if (verb == "network-once" && network_switches) power = "on";
    if (verb == "network-once") next_network = !forgets_network;
    return Json{{"power", verb == "off" ? "off" : power}};
  }
  Json describe() const {
    Json out = {{"driver", "redfish"}, {"power", described.empty() ? power : described}};
    if (tells_next) out["boots_network_next"] = next_network;
    return out;
  }
  size_t orders() const {
    return static_cast<size_t>(std::count_if(calls.begin(), calls.end(),
                                             [](const auto& c) { return c != "state" && c != "describe"; }));
  }
};

}  // namespace

TEST_CASE("a driver that keeps its contract passes, and the machine is left as it was", "[power][cli]") {
  for (const std::string before : {"off", "on"}) {
    Machine machine;
    machine.power = before;
    machine.tells_next = before == "on";
    const auto report = test_power("gpu01", machine.hooks());
    REQUIRE(report.ok());
    CHECK(report->at("passed") == true);
    CHECK(machine.power == before);
    CHECK(machine.requested == (before == "on" ? 1 : 0));
    CHECK_FALSE(machine.next_network);  // nothing is left for the next boot
  }
}

TEST_CASE("a machine that is on is not switched off without leave", "[power][cli]") {
  Machine machine;
  machine.power = "on";
  machine.allowed = false;
  const auto report = test_power("gpu01", machine.hooks());
  REQUIRE_FALSE(report.ok());
  CHECK(report.error().code == Code::denied);
  CHECK(machine.orders() == 0);
}

TEST_CASE("a state that cannot be read ends the test before anything is switched", "[power][cli]") {
  Machine machine;
  machine.broken = "state";
  CHECK(test_power("gpu01", machine.hooks()).error().code == Code::unavailable);
  CHECK(machine.orders() == 0);
}

TEST_CASE("a broken promise fails at its step, and the machine is switched on again", "[power][cli]") {
  const auto failed_at = [](Machine& machine) {
    machine.power = "on";
    const auto report = test_power("gpu01", machine.hooks());
    REQUIRE(report.ok());
    CHECK(report->at("passed") == false);
    CHECK(machine.power == "on");
    for (const Json& step : report->at("steps"))
      if (!step["ok"].get<bool>()) return step["step"].get<std::string>();
    return std::string();
  };
  Machine lies, network, no_network, silent, forgets, deaf, other;
  lies.off_lies = true;
  CHECK(failed_at(lies) == "off");
  network.network_switches = true;
  CHECK(failed_at(network) == "network once: set, power unchanged");
  no_network.broken = "network-once";
  CHECK(failed_at(no_network) == "network once: set, power unchanged");
  silent.broken = "describe";
  CHECK(failed_at(silent) == "describe");
  forgets.tells_next = forgets.forgets_network = true;
  CHECK(failed_at(forgets) == "network boot is reported");
  deaf.deaf = true;
  CHECK(failed_at(deaf) == "shutdown");
  other.described = "off";
  CHECK(failed_at(other) == "describe");
}

TEST_CASE("a state that changes without a power call is no state", "[power][cli]") {
  Machine machine;
  int looks = 0;
  auto hooks = machine.hooks();
  const auto call = hooks.call;
  hooks.call = [&](const std::string& verb) -> Result<Json> {
    if (verb == "state" && ++looks == 2) return Json{{"power", "on"}};
    return call(verb);
  };
  const auto report = test_power("gpu01", hooks);
  REQUIRE(report.ok());
  CHECK(report->at("passed") == false);
  CHECK(report->at("steps").back()["step"] == "state again");
}

TEST_CASE("a driver that cannot boot from the network has to refuse, and to leave the machine",
          "[power][cli]") {
  Machine machine;
  machine.network_never = true;
  CHECK(test_power("gpu01", machine.hooks())->at("passed") == true);
  Machine does_it = machine;
  does_it.refuses_network = false;
  CHECK(test_power("gpu01", does_it.hooks())->at("passed") == false);
  Machine switches = machine;
  switches.network_switches = true;
  switches.refuses_network = false;
  CHECK(test_power("gpu01", switches.hooks())->at("passed") == false);
}
