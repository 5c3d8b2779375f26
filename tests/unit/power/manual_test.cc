// Driver `manual`: what it refuses, and what ends a task that a person has.
#include "controller/power/manual.h"

#include "controller/power/describe/driver_description.h"
#include "controller/power/service/power_service.h"
#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"

using namespace muster;

namespace {

struct Desk {
  ManualReactor reactor;
  ByHand hands{reactor};
  std::vector<std::string> ended;
  void request(const std::string& node, ByHand::Task task) {
    hands.request(node, task, [this, node](Status how) {
      ended.push_back(node + (how.ok()                              ? " ok"
                              : how.error().code == Code::cancelled ? " cancelled"
                                                                    : " failed"));
    });
  }
  std::vector<std::string> what_ended() {
    reactor.advance(1);
    return std::exchange(ended, {});
  }
};
using Ended = std::vector<std::string>;

}  // namespace

TEST_CASE("what a person switches is switched by no call, and the refusal says so", "[power][manual]") {
  const PowerDriver driver = manual_driver();
  CHECK(description_of(driver.name).by == Switch::person);
  PowerTarget target;
  target.node = "gpu01";
  target.address = "rack 3, unit 12";
  auto power = driver.make(target);
  REQUIRE(power.ok());
  CHECK((*power)->state(kSecond).value() == PowerState::unknown);
  for (const Status& refused : {(*power)->on(kSecond), (*power)->off(kSecond, false),
                                (*power)->off(kSecond, true), (*power)->can_boot_network(kSecond),
                                (*power)->boot_once_network(kSecond), boot_from_network(**power, kSecond)}) {
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == Code::invalid);
  }
  CHECK((*power)->describe(kSecond).value()["where"] == "rack 3, unit 12");
}

TEST_CASE("a task ends by its own effect, by the operator's word, or as cancelled; once", "[power][manual]") {
  Desk d;
  d.request("n1", ByHand::Task::netboot);
  d.request("n2", ByHand::Task::on);
  d.request("n3", ByHand::Task::off);
  CHECK(d.ended.empty());
  // Of another kind, or another node.
  d.hands.saw_agent("n1");
  d.hands.saw_agent("n3");
  d.hands.saw_netboot("n2");
  d.hands.saw_netboot("n3");
  d.hands.saw_netboot("n4");
  CHECK(d.what_ended().empty());
  d.hands.saw_netboot("n1");
  CHECK(d.ended.empty());  // never inside the call
  CHECK(d.what_ended() == Ended{"n1 ok"});
  d.hands.saw_agent("n2");
  CHECK(d.hands.said_done("n3").value() == ByHand::Task::off);
  CHECK(d.what_ended() == Ended{"n2 ok", "n3 ok"});
  for (const char* node : {"n1", "n2", "n3"}) CHECK(d.hands.said_done(node).error().code == Code::conflict);
  d.hands.saw_netboot("n1");
  CHECK(d.what_ended().empty());
}

TEST_CASE("another task takes the place of one that is open", "[power][manual]") {
  Desk d;
  d.request("n1", ByHand::Task::on);
  d.request("n1", ByHand::Task::netboot);
  CHECK(d.what_ended() == Ended{"n1 cancelled"});
  CHECK(d.hands.requested("n1") == ByHand::Task::netboot);
  d.hands.forget("n1");
  d.hands.forget("n1");
  CHECK(d.what_ended() == Ended{"n1 cancelled"});
  CHECK_FALSE(d.hands.requested("n1"));
}
