// Nodes that nothing can switch: their own agent is ordered to hand over to the RAM system, and nothing else
// is tried.
#include "tests/unit/run/bench.h"

using namespace muster;
using testing::action;
using Bench = testing::RunBench;

namespace {

const ExecutorTiming kTiming;

Action image_of(const std::string& node) { return action(node, "image", ActionKind::image); }

// n1 has no BMC and runs a system that was adopted: boot "old1".
void begin(Bench& b) {
  b.without_bmc = {"n1"};
  b.plan.kind = PlanKind::reimage;
  b.add(action("n1", "netboot", ActionKind::netboot));
  b.plan.actions[0].timeout = 20 * kMinute;
  b.plan.actions[0].max_attempts = 3;
  b.add(image_of("n1"), {{"n1/netboot", true}});
  b.add(action("n1", "boot", ActionKind::boot_disk, {{"digest", "sha256:new"}}), {{"n1/image", true}});
  b.plan.actions[2].timeout = 15 * kMinute;
  b.live();
  b.executor->on_hello({"n1", wire::Mode::adopted, "old1", ""});
  b.reactor.advance(100);
  b.executor->start(b.plan, "test", [](Result<int64_t> id) { REQUIRE(id.ok()); });
  b.reactor.advance(200);
}

OrderId kexec_id(Bench& b, int attempt) { return OrderId(b.id("n1/netboot", attempt) + "-kexec"); }
std::string token(const Bench& b) { return b.offers.at("n1").params["arguments"].get<std::string>(); }

// Its agent is ready, says so, and is gone.
void hands_over(Bench& b) {
  REQUIRE(b.offers.count("n1"));
  REQUIRE(b.offers["n1"].kind == wire::OrderKind::kexec);
  b.finish("n1");
}

void no_power(const Bench& b) {
  CHECK(b.powered.empty());
  CHECK(b.switched_on.empty());
  CHECK(b.looks == 0);
}

}  // namespace

TEST_CASE("a node without a BMC is ordered into the RAM system, imaged, and comes up by itself",
          "[run][kexec]") {
  Bench b;
  begin(b);
  CHECK(b.offered("n1") == kexec_id(b, 1));
  CHECK(b.armed.count("n1") == 1);
  CHECK(b.executor->expects("n1", kexec_id(b, 1)));
  CHECK(b.executor->why("n1")["wait"]["awaited"] == "its agent's confirmation");
  hands_over(b);
  CHECK(b.offered("n1") == "");
  CHECK(std::count(b.withdrawn.begin(), b.withdrawn.end(), kexec_id(b, 1)) == 0);  // it would stay
  CHECK(b.executor->expects("n1", kexec_id(b, 1)));
  CHECK(b.executor->why("n1")["wait"]["awaited"] == "the RAM system's agent");
  b.hello("n1", wire::Mode::ram, "ram1");
  CHECK(b.armed.empty());
  CHECK(b.offered("n1") == b.id("n1/image", 1));
  CHECK_FALSE(b.executor->expects("n1", kexec_id(b, 1)));
  b.finish("n1");
  b.finish("n1");
  b.hello("n1", wire::Mode::installed, "new1", "sha256:new");
  CHECK(b.row("n1").state == NodeState::accepted);
  REQUIRE(b.ended.size() == 1);
  CHECK(b.ended[0].state == RunState::done);
  no_power(b);
}

TEST_CASE("the old system that is back is recognized, tried again, and given up after three times",
          "[run][kexec]") {
  Bench b;
  begin(b);
  for (int attempt = 1; attempt <= 3; ++attempt) {
    CAPTURE(attempt);
    CHECK(b.offered("n1") == kexec_id(b, attempt));
    CHECK(token(b) == "muster.token=" + std::to_string(attempt));
    hands_over(b);
    b.reactor.advance(10 * kMinute);
    b.hello("n1", wire::Mode::adopted, "old" + std::to_string(attempt + 1));
  }
  CHECK(b.row("n1").state == NodeState::quarantined);
  CHECK(b.row("n1").reason.find("the old system is back") != std::string::npos);
  CHECK(b.offered("n1") == "");
  CHECK(b.armed.empty());
  no_power(b);
}

TEST_CASE("what a system does not allow ends it at once; what may pass is another attempt", "[run][kexec]") {
  Bench b;
  begin(b);
  const auto answer = [&](const std::string& code) {
    b.finish_order("n1", b.offered("n1"), false, code, Json::object());
  };
  SECTION("denied") {
    answer("denied");
    CHECK(b.row("n1").state == NodeState::quarantined);
    CHECK(b.row("n1").reason.find("broken") != std::string::npos);  // what the agent said
  }
  SECTION("an agent that does not know the order") {
    answer("invalid");
    CHECK(b.row("n1").state == NodeState::quarantined);
  }
  SECTION("it did not get the files") {
    for (const char* code : {"unavailable", "failed"}) answer(code);
    // Never under an order that was answered: the agent would answer the same again.
    CHECK(b.offered("n1") == kexec_id(b, 3));
    answer("timeout");
    b.reactor.advance(25 * kMinute);  // unknown: it may be on its way
    CHECK(b.row("n1").state == NodeState::quarantined);
  }
  CHECK(b.armed.empty());
  no_power(b);
}

TEST_CASE("the boot service that does not answer is called again, and no order goes out before",
          "[run][kexec]") {
  Bench b;
  b.leave_answers = {fail(Code::unavailable, "the store is busy"),
                     fail(Code::unavailable, "the store is busy")};
  begin(b);
  CHECK(b.offered("n1") == "");
  CHECK(b.executor->why("n1")["wait"]["observed"] == "the store is busy");
  b.reactor.advance(10 * kSecond);
  CHECK(b.offered("n1") == kexec_id(b, 1));
  no_power(b);
}

TEST_CASE("an agent that reported its departure and still answers gets the order once more", "[run][kexec]") {
  Bench b;
  begin(b);
  hands_over(b);
  for (DurationMs passed = 0; passed < kTiming.leave_shows + 40 * kSecond; passed += 20 * kSecond) {
    CHECK(b.offered("n1") == "");
    b.reactor.advance(20 * kSecond);
    b.executor->on_contact("n1", {"old1", wire::Mode::adopted});
    b.reactor.advance(100);
    if (b.offered("n1") != "") break;
  }
  CHECK(b.offered("n1") == kexec_id(b, 2));
  no_power(b);
}

TEST_CASE("one of which nothing is heard is waited for, and taken out at its deadline", "[run][kexec]") {
  Bench b;
  begin(b);
  hands_over(b);
  b.reactor.advance(19 * kMinute);
  CHECK(b.offered("n1") == "");
  CHECK(b.row("n1").state == NodeState::installing);
  b.reactor.advance(2 * kMinute);
  CHECK(b.offered("n1") == kexec_id(b, 2));  // for whatever system runs there
  b.reactor.advance(2 * 21 * kMinute);
  CHECK(b.row("n1").state == NodeState::quarantined);
  no_power(b);
}

TEST_CASE("a reply that is lost with the controller is requested again under the same order",
          "[run][kexec]") {
  Bench b;
  begin(b);
  const OrderId order = b.offered("n1");
  // Killed before, or after, the agent's word was taken.
  if (GENERATE(true, false)) hands_over(b);
  b.restart();
  REQUIRE(b.executor->resume(1).ok());
  b.reactor.advance(200);
  CHECK(b.rearmed == std::vector<std::string>{"n1"});
  CHECK(b.offered("n1") == order);
  CHECK(b.executor->expects("n1", order));
  SECTION("it is still there, and says what it said before") {
    b.executor->on_contact("n1", {"old1", wire::Mode::adopted});
    b.finish("n1");
    b.hello("n1", wire::Mode::ram, "ram1");
    CHECK(b.offered("n1") == b.id("n1/image", 1));
  }
  SECTION("it is gone, and the RAM system comes") {
    b.hello("n1", wire::Mode::ram, "ram1");
    CHECK(b.offered("n1") == b.id("n1/image", 1));
  }
  SECTION("it is gone, and the old system comes back") {
    b.reactor.advance(10 * kMinute);
    b.hello("n1", wire::Mode::adopted, "old2");
    CHECK(b.offered("n1") == kexec_id(b, 2));
  }
  no_power(b);
}

TEST_CASE("a controller that was killed when the RAM system was there already goes on there",
          "[run][kexec]") {
  Bench b;
  begin(b);
  hands_over(b);
  // The hello was taken and written; what follows from it was not.
  b.executor->set_node("n1", [](NodeRow& row) {
    row.mode = "ram";
    row.boot_id = "ram1";
  });
  b.reactor.advance(10);
  b.restart();
  REQUIRE(b.executor->resume(1).ok());
  b.reactor.advance(200);
  b.executor->on_contact("n1", {"ram1", wire::Mode::ram});
  b.reactor.advance(200);
  CHECK(b.offered("n1") == b.id("n1/image", 1));
  no_power(b);
}

TEST_CASE("a RAM system that is silent while it images is waited for, whatever a BMC would do",
          "[run][kexec]") {
  Bench b;
  begin(b);
  hands_over(b);
  b.hello("n1", wire::Mode::ram, "ram1");
  REQUIRE(b.offered("n1") == b.id("n1/image", 1));
  b.reactor.advance(8 * kMinute);
  CHECK(b.offered("n1") == b.id("n1/image", 1));
  b.executor->on_contact("n1", {"ram1", wire::Mode::ram});
  b.finish("n1");
  CHECK(b.offered("n1") == b.id("n1/boot", 1));
  no_power(b);
}

TEST_CASE("a RAM system that fell back to the old system before imaging is started once more",
          "[run][kexec]") {
  Bench b;
  begin(b);
  hands_over(b);
  b.hello("n1", wire::Mode::ram, "ram1");
  b.hello("n1", wire::Mode::adopted, "old2");
  CHECK(b.offered("n1") == b.id("n1/image", 2) + "-kexec");
  b.finish("n1");
  b.hello("n1", wire::Mode::ram, "ram2");
  CHECK(b.offered("n1") == b.id("n1/image", 2));
  no_power(b);
}

TEST_CASE("a new system that does not come is given up in time: nothing can fetch it", "[run][kexec]") {
  Bench b;
  begin(b);
  hands_over(b);
  b.hello("n1", wire::Mode::ram, "ram1");
  b.finish("n1");
  b.finish("n1");
  b.reactor.advance(14 * kMinute);
  CHECK(b.row("n1").state == NodeState::installing);
  CHECK(b.executor->why("n1")["wait"]["next"].get<std::string>().find("quarantine") == 0);
  b.reactor.advance(3 * kMinute);
  CHECK(b.row("n1").state == NodeState::quarantined);
  no_power(b);
}

TEST_CASE("cancelling takes the order back", "[run][kexec]") {
  Bench b;
  begin(b);
  b.executor->cancel("changed my mind");
  CHECK(b.offered("n1") == "");
  CHECK(std::count(b.withdrawn.begin(), b.withdrawn.end(), kexec_id(b, 1)) == 1);
  CHECK(b.armed.empty());
  CHECK_FALSE(b.executor->expects("n1", kexec_id(b, 1)));
}

TEST_CASE("a controller that is killed at any point brings it to the same end", "[run][kexec]") {
  Bench b;
  begin(b);
  const std::vector<std::function<void()>> story = {
      [&] { hands_over(b); },
      [&] { b.hello("n1", wire::Mode::ram, "ram1"); },
      [&] { b.finish("n1"); },  // image
      [&] { b.finish("n1"); },  // boot
      [&] { b.hello("n1", wire::Mode::installed, "new1", "sha256:new"); },
  };
  const size_t killed_before = GENERATE(range(size_t{0}, size_t{5}));
  CAPTURE(killed_before);
  for (size_t i = 0; i < story.size(); ++i) {
    if (i == killed_before) {
      b.restart();
      REQUIRE(b.executor->resume(1).ok());
      b.reactor.advance(200);
      // The system that runs there polls for orders.
      if (i < 1) b.executor->on_contact("n1", {"old1", wire::Mode::adopted});
      if (i == 2 || i == 3) b.executor->on_contact("n1", {"ram1", wire::Mode::ram});
      b.reactor.advance(200);
    }
    story[i]();
  }
  CHECK(b.row("n1").state == NodeState::accepted);
  CHECK(b.offered("n1") == "");
  const auto journal = b.store.journal(1).value();
  CHECK(std::count_if(journal.begin(), journal.end(), [](const JournalRow& row) {
          return row.action == "n1/image" && row.event == "intent";
        }) == 1);
  no_power(b);
}
