// A node re-imaged in place, and every way in which that fails: it ends in the new system, or in the old one
// and at work, or quarantined with both reasons.
#include "controller/bringup/run_view.h"
#include "tests/unit/run/in_place.h"

using namespace muster;
using testing::InPlace;
using wire::OrderKind;

TEST_CASE("a node is re-imaged in place, and nothing of its way back is done", "[run][slot]") {
  InPlace b;
  b.go();
  CHECK(b.on_offer("n1/write", OrderKind::write_slot));
  b.reaches("n1", "boot");
  CHECK(b.on_offer("n1/boot", OrderKind::boot_slot));
  CHECK(b.offers["n1"].params["slot"] == "b");
  const OrderId order = b.offered("n1");
  b.finish("n1");
  CHECK(b.offered("n1") == "");
  CHECK(std::count(b.withdrawn.begin(), b.withdrawn.end(), order) == 0);  // withdrawn it would stay
  CHECK(b.executor->expects("n1", order));
  b.old_system("n1", "old");  // its agent was restarted: no answer
  CHECK(b.offered("n1") == "");
  b.new_system("n1", "new");
  for (const char* name : {"configure", "accept", "commit", "resume"}) {
    CHECK(b.offered("n1") == b.id(std::string("n1/") + name, 1));
    CHECK(b.row("n1").state == NodeState::installing);
    CHECK(b.executor->on_trial("n1") == !b.is_committed("n1"));
    b.finish("n1");
  }
  b.ended_as(RunState::done);
  CHECK(b.row("n1").state == NodeState::accepted);
  CHECK(b.row("n1").accepted_run == 1);
  CHECK(b.row("n1").config_digest == "sha256:conf-new");
  CHECK(b.row("n1").reason == "");
  CHECK(b.executor->log().of("n1/return").state == ActionState::fresh);
  b.no_power();
}

TEST_CASE("a node is what it was while its slot is written beside its jobs, and no longer", "[run][slot]") {
  const std::string state = GENERATE("accepted", "degraded");
  InPlace b({"n1"}, state);
  const auto is_now = [&b](const std::string& wanted) { return to_string(b.row("n1").state) == wanted; };
  b.go();
  REQUIRE(b.offered("n1") == b.id("n1/write", 1));
  CHECK(is_now(state));
  SECTION("and then it is paused") {
    b.finish("n1");
    REQUIRE(b.offered("n1") == b.id("n1/pause", 1));
    CHECK(is_now("installing"));
  }
  SECTION("also by a controller that was restarted meanwhile") {
    b.killed();
    b.asks("n1", "old", false);
    CHECK(is_now(state));
    b.finish("n1");
    REQUIRE(b.offered("n1") == b.id("n1/pause", 1));
    CHECK(is_now("installing"));
  }
  SECTION("and when that fails") {
    b.fails("n1");
    CHECK(is_now(state));
    b.ended_as(RunState::partial);
  }
}

TEST_CASE("what fails before the restart costs no restart", "[run][slot]") {
  const std::string state = GENERATE("accepted", "degraded");
  InPlace b({"n1"}, state);
  b.go();
  bool paused = true;
  SECTION("the slot cannot be written") {
    b.fails("n1");
    paused = false;
  }
  SECTION("its jobs do not end") {
    b.reaches("n1", "pause");
    b.fails("n1");
  }
  SECTION("it cannot be started from the other slot") {
    b.reaches("n1", "boot");
    b.finish("n1", false, "failed");  // not tried again either
  }
  if (paused) {
    CHECK(b.shown("n1") != "returned");
    CHECK(b.executor->why("n1")["returning"] == true);
    CHECK(b.offered("n1") == b.id("n1/resume-old", 1));
    b.finish("n1");
  }
  // What was not drained needs no resume: Slurm's controller may be away.
  CHECK(b.executor->log().of("n1/resume-old").attempt == (paused ? 1 : 0));
  b.is_back("n1", state == "accepted" ? NodeState::accepted : NodeState::degraded);
  CHECK(b.says("n1", "broken"));
  b.ended_as(RunState::partial);
  b.no_power();
}

TEST_CASE("a trial that ends by itself brings the old system back", "[run][slot]") {
  InPlace b;
  b.panic = "Kernel panic - not syncing";
  b.go();
  b.reaches("n1", "boot");
  b.finish("n1");
  b.reactor.advance(10 * kMinute);
  CHECK(b.executor->why("n1")["wait"]["observed"].get<std::string>().find(b.panic) != std::string::npos);
  b.old_system("n1", "back");
  CHECK(b.offered("n1") == b.id("n1/resume-old", 1));
  b.finish("n1");
  b.is_back("n1");
  CHECK(b.says("n1", "it came back in slot a"));
  CHECK(b.says("n1", b.panic));
  b.ended_as(RunState::partial);
  b.no_power();
}

TEST_CASE("a trial is not won by the wrong system", "[run][slot]") {
  InPlace b;
  b.go();
  b.reaches("n1", "boot");
  SECTION("another image in that slot") {
    b.finish("n1");
    b.hello("n1", wire::Mode::installed, "n1-new", "sha256:third", "b");
  }
  SECTION("the RAM system") {
    b.finish("n1");
    b.hello("n1", wire::Mode::ram, "n1-new");
  }
  SECTION("it restarted without a word") { b.old_system("n1", "back"); }
  CHECK(b.executor->log().of("n1/boot").state == ActionState::abandoned);
  CHECK(b.executor->log().of("n1/return").attempt == 1);
}

TEST_CASE("a system that hangs is ended by a power cycle, which boots the old one", "[run][slot]") {
  InPlace b;
  b.go();
  b.reaches("n1", "boot");
  b.finish("n1");
  b.reactor.advance(35 * kMinute);
  CHECK(b.switched_off.empty());
  SECTION("at once") {}
  SECTION("its BMC is busy, and an answer is lost") {
    b.off_answers = {fail(Code::unavailable, "503"), fail(Code::timeout, "no answer")};
  }
  b.reactor.advance(8 * kMinute);
  CHECK_FALSE(b.switched_off.empty());
  CHECK(b.switched_on == std::vector<std::string>{"n1"});
  CHECK(b.powered.empty());  // nothing is booted from the network
  b.old_system("n1", "back");
  b.finish("n1");
  b.is_back("n1");
  CHECK(b.says("n1", "it hung"));
  b.ended_as(RunState::partial);
}

TEST_CASE("no system comes after the power cycle either", "[run][slot]") {
  InPlace b;
  b.go();
  b.reaches("n1", "boot");
  b.finish("n1");
  b.reactor.advance(65 * kMinute);  // two boots, and the one after the power cycle
  CHECK(b.executor->log().of("n1/return").attempt == 1);
  b.reactor.advance(90 * kMinute);
  CHECK(b.row("n1").state == NodeState::quarantined);
  CHECK(b.says("n1", "boot: "));
  CHECK(b.says("n1", "and the return to the old system failed: "));
  CHECK(b.switched_off == std::vector<std::string>{"n1", "n1"});
  b.ended_as(RunState::failed);
}

TEST_CASE("without a BMC a person has to end a hang", "[run][slot]") {
  InPlace b;
  b.without_bmc = {"n1"};
  b.go();
  b.reaches("n1", "boot");
  b.finish("n1");
  b.reactor.advance(45 * kMinute);
  CHECK(b.row("n1").reason.find("a person must cycle its power") != std::string::npos);
  SECTION("a person does") {
    b.old_system("n1", "back");
    b.finish("n1");
    b.is_back("n1");
    b.ended_as(RunState::partial);
  }
  SECTION("no person does") {
    b.reactor.advance(60 * kMinute);
    CHECK(b.row("n1").state == NodeState::quarantined);
    CHECK(b.says("n1", "and the return to the old system failed: "));
    b.ended_as(RunState::failed);
  }
  b.no_power();
  CHECK(b.looks == 0);
}

TEST_CASE("a new system that fails is left by a restart", "[run][slot]") {
  const std::string at = GENERATE("configure", "accept", "commit");
  CAPTURE(at);
  InPlace b;
  b.go();
  b.reaches("n1", at);
  if (at == "accept") b.verdict = fail(Code::denied, "dgemm: broken");
  b.finish("n1", at == "accept", "denied");
  if (at == "accept" && b.offered("n1") == "") {  // once more
    b.reactor.advance(6 * kSecond);
    if (b.offered("n1") == b.id("n1/accept", 2)) b.finish("n1");
  }
  REQUIRE(b.on_offer("n1/return", OrderKind::reboot));
  b.finish("n1");
  CHECK(b.offered("n1") == "");
  b.old_system("n1", "back");
  CHECK(b.offered("n1") == b.id("n1/resume-old", 1));
  b.finish("n1");
  b.is_back("n1");
  CHECK(b.says("n1", at + ": "));
  CHECK(b.says("n1", "broken"));
  b.ended_as(RunState::partial);
  b.no_power();
}

TEST_CASE("what fails once the new system stands is not undone", "[run][slot]") {
  InPlace b;
  b.go();
  b.reaches("n1", "resume");
  b.fails("n1");
  CHECK(b.row("n1").state == NodeState::quarantined);
  CHECK(b.says("n1", "not returned to service"));
  CHECK_FALSE(b.says("n1", "on trial"));
  CHECK(b.executor->log().of("n1/return").state == ActionState::fresh);
  b.ended_as(RunState::failed);
}

TEST_CASE("a trial that ends in the middle of the work: nothing is done to the old system", "[run][slot]") {
  const std::string at = GENERATE("configure", "accept", "commit");
  InPlace b;
  b.go();
  b.reaches("n1", at);
  SECTION("its agent says so") { b.old_system("n1", "back"); }
  SECTION("it says so to another life of the controller") {
    b.killed();
    b.asks("n1", "back", false);
  }
  CHECK(b.offered("n1") == b.id("n1/resume-old", 1));
  b.finish("n1");
  b.is_back("n1");
  CHECK(b.says("n1", "the trial of slot b ended"));
  b.no_power();
}

TEST_CASE("the way back may need a second restart, and no third", "[run][slot]") {
  InPlace b;
  b.go();
  b.reaches("n1", "configure");
  b.fails("n1");
  b.finish("n1");
  b.new_system("n1", "again");
  b.reactor.advance(6 * kSecond);
  REQUIRE(b.offered("n1") == b.id("n1/return", 2));  // under another id: its agent knows the first one
  b.finish("n1");
  SECTION("it is back") {
    b.old_system("n1", "back");
    b.finish("n1");
    b.is_back("n1");
  }
  SECTION("it is not") {
    b.new_system("n1", "third");
    CHECK(b.row("n1").state == NodeState::quarantined);
    CHECK(b.says("n1", "configure: "));
    CHECK(b.says("n1", "and the return to the old system failed: "));
    b.ended_as(RunState::failed);
  }
}

TEST_CASE("a new system without an agent that answers is left by a power cycle", "[run][slot]") {
  InPlace b;
  b.go();
  b.reaches("n1", "configure");
  SECTION("it refuses to restart") {
    b.fails("n1");
    b.fails("n1");
  }
  SECTION("it fell silent") {
    b.reactor.advance(20 * kMinute);  // its time to configure
  }
  b.reactor.advance(5 * kMinute);
  CHECK(b.switched_off == std::vector<std::string>{"n1"});
  CHECK(b.switched_on == std::vector<std::string>{"n1"});
  b.old_system("n1", "back");
  b.finish("n1");
  b.is_back("n1");
}

TEST_CASE("a node that is only silent in its old system keeps its power", "[run][slot]") {
  InPlace b;
  b.go();
  b.reactor.advance(20 * kMinute);  // the network is away while the slot is written
  CHECK(b.executor->log().of("n1/return").attempt == 1);
  b.reactor.advance(20 * kMinute);
  CHECK(b.switched_off.empty());
  SECTION("it is heard again") {
    b.asks("n1", "old", false);
    b.is_back("n1");
  }
  SECTION("it is not") {
    b.reactor.advance(40 * kMinute);
    CHECK(b.row("n1").state == NodeState::quarantined);
    CHECK_FALSE(b.says("n1", "not returned to service"));
  }
  CHECK(b.switched_off.empty());
}

TEST_CASE("a machine that loses its power on the way is switched on, and counts as what comes up",
          "[run][slot]") {
  InPlace b;
  b.go();
  b.reaches("n1", "boot");
  b.finish("n1");
  b.power_state = PowerState::off;
  b.reactor.advance(3 * kMinute);
  REQUIRE_FALSE(b.switched_on.empty());
  b.power_state = PowerState::on;
  SECTION("the trial") {
    b.new_system("n1", "new");
    CHECK(b.offered("n1") == b.id("n1/configure", 1));
  }
  SECTION("the old system") {
    b.old_system("n1", "back");
    b.finish("n1");
    b.is_back("n1");
    CHECK(b.says("n1", "lost power"));
  }
  CHECK(b.switched_off.empty());
}

TEST_CASE("a machine that stays off is switched on three times", "[run][slot]") {
  InPlace b;
  b.go();
  b.reaches("n1", "boot");
  b.finish("n1");
  b.power_state = PowerState::off;
  b.reactor.advance(60 * kMinute);
  CHECK(b.row("n1").state == NodeState::quarantined);
  CHECK(b.switched_on.size() == 6);  // for the boot, and for the way back
}

TEST_CASE("a system that does not go when it said so is not restarted", "[run][slot]") {
  InPlace b;
  b.go();
  b.reaches("n1", "boot");
  b.finish("n1");
  for (int i = 0; i < 10; ++i) {
    b.reactor.advance(20 * kSecond);
    b.asks("n1", "old", false);
  }
  CHECK(b.offered("n1") == b.id("n1/resume-old", 1));
  b.finish("n1");
  b.is_back("n1");
  b.no_power();
}

TEST_CASE("a node that needs one that failed goes back as well", "[run][slot]") {
  InPlace b({"n1", "n2"});
  b.plan.actions[3].after = {{"n2/commit", true}};  // n1's configure needs n2, which fails
  b.go();
  b.reaches("n1", "boot");
  b.finish("n1");
  b.new_system("n1", "new");
  CHECK(b.offered("n1") == "");
  b.reaches("n2", "commit");
  b.fails("n2");
  REQUIRE(b.on_offer("n1/return", OrderKind::reboot));
  b.finish("n1");
  b.old_system("n1", "back");
  b.finish("n1");
  b.is_back("n1");
  CHECK(b.says("n1", "needs n2/commit"));
}

TEST_CASE("an operator's quarantine is no way back", "[run][slot]") {
  InPlace b;
  b.go();
  SECTION("before the restart") {}
  SECTION("on trial") { b.reaches("n1", "configure"); }
  SECTION("on its way back") {
    b.reaches("n1", "configure");
    b.fails("n1");
  }
  b.executor->quarantine("n1", "by an operator");
  b.reactor.advance(kSecond);
  CHECK(b.row("n1").state == NodeState::quarantined);
  CHECK(b.says("n1", "by an operator"));
  CHECK(b.offered("n1") == "");
  b.ended_as(RunState::failed);
}

TEST_CASE("a cancelled run leaves a system on trial to its own timer, and says so", "[run][slot]") {
  InPlace b;
  b.go();
  SECTION("on trial") {
    b.reaches("n1", GENERATE("boot", "configure", "commit"));
    b.executor->cancel("by an operator");
    b.reactor.advance(kSecond);
    CHECK(b.says("n1", "slot b on trial"));
  }
  SECTION("in the middle of a power cycle: it is not left off") {
    b.reaches("n1", "boot");
    b.finish("n1");
    b.off_answers = std::vector<Status>(50, fail(Code::timeout, "no answer"));
    b.reactor.advance(42 * kMinute);
    REQUIRE_FALSE(b.switched_off.empty());
    REQUIRE(b.switched_on.empty());
    b.executor->cancel("by an operator");
    b.reactor.advance(kSecond);
    CHECK(b.switched_on.size() == 1);
  }
  SECTION("once the new system stands") {
    b.reaches("n1", "resume");
    b.executor->cancel("by an operator");
    b.reactor.advance(kSecond);
    CHECK_FALSE(b.says("n1", "on trial"));
  }
  CHECK(b.row("n1").state == NodeState::degraded);
  CHECK(b.says("n1", "by an operator"));
  CHECK(b.says("n1", "not returned to service"));
  CHECK(b.offered("n1") == "");
  CHECK(b.store.run(1)->state == RunState::cancelled);
}

TEST_CASE("others go on without a node that goes back, and the run is no success", "[run][slot]") {
  InPlace b({"n1", "n2"});
  b.plan.barriers = {{"n1/configure", "n2/configure"}};
  for (auto& a : b.plan.actions)
    if (a.phase == "accept") a.behind = 0;
  SECTION("one of two") {
    b.go();
    b.reaches("n1", "configure");
    b.finish("n1");
    b.reaches("n2", "configure");
    CHECK(b.offered("n1") == "");
    b.fails("n2");
    for (const char* name : {"accept", "commit", "resume"}) {
      CHECK(b.offered("n1") == b.id(std::string("n1/") + name, 1));
      b.finish("n1");
    }
    CHECK(b.ended.empty());  // n2 is not back yet
    b.finish("n2");
    b.old_system("n2", "back");
    b.finish("n2");
    b.is_back("n2");
    CHECK(b.row("n1").state == NodeState::accepted);
    CHECK(b.row("n1").accepted_run == 1);
    b.ended_as(RunState::partial);
    const auto view = run_view(b.store, 1);
    REQUIRE(view.ok());
    CHECK((*view)["nodes"][0]["result"] == "accepted");
    CHECK((*view)["nodes"][1]["result"] == "returned");
    CHECK((*view)["nodes"][1]["reason"].get<std::string>().find("configure: broken") != std::string::npos);
    size_t in_reserve = 0;
    for (const Json& a : (*view)["actions"]) in_reserve += a["id"] == "n1/return" || a["id"] == "n2/return";
    CHECK(in_reserve == 1);  // what was not needed is not shown
  }
  SECTION("the failure budget counts it") {
    b.plan.limits.failure_budget = 0;
    b.plan.limits.parallel_imaging = 1;
    b.go();
    CHECK(b.offered("n2") == "");
    b.fails("n1");
    b.is_back("n1");
    CHECK(b.row("n2").reason.find("failure budget") != std::string::npos);
    CHECK(b.row("n2").state == NodeState::accepted);
    b.ended_as(RunState::partial);
  }
  SECTION("a slot that is written takes a place of the images") {
    b.plan.limits.parallel_imaging = 1;
    b.go();
    CHECK(b.offered("n2") == "");
    b.finish("n1");
    CHECK(b.offered("n2") == b.id("n2/write", 1));
  }
}

TEST_CASE("a conclusion about all nodes does not change one that went back", "[run][slot]") {
  InPlace b;
  b.conclude = [](const RunRow&) {
    Conclusion out;
    out.nodes = {{"n1", true, "slower than the others"}};
    return out;
  };
  b.restart();
  b.old_system("n1", "old");
  b.go();
  b.fails("n1");
  b.is_back("n1");
  b.ended_as(RunState::partial);
}

TEST_CASE("in place, the failure budget is checked again before a node leaves its system", "[run][slot]") {
  const bool pauses = GENERATE(true, false);
  CAPTURE(pauses);
  InPlace b({"n1", "n2", "n3"});
  if (!pauses)
    std::erase_if(b.plan.actions, [](const Action& a) { return a.phase == "pause" || a.phase == "resume"; });
  const std::string leaves = pauses ? "pause" : "boot";
  b.plan.limits.failure_budget = 0;
  b.go();
  for (const char* node : {"n1", "n2", "n3"})
    REQUIRE(b.offered(node) == b.id(std::string(node) + "/write", 1));
  b.finish("n3");
  REQUIRE(b.offered("n3") == b.id("n3/" + leaves, 1));
  b.fails("n1");
  b.is_back("n1");
  b.finish("n2");
  CHECK(b.offered("n2") == "");
  CHECK(b.shown("n2") == "not_started");
  CHECK(b.row("n2").state == NodeState::accepted);
  CHECK(b.row("n2").reason == "not begun: 1 nodes failed and the failure budget is 0");
  CHECK(b.executor->log().of("n2/" + leaves).attempt == 0);
  // Who had left goes on.
  if (pauses) b.finish("n3");
  REQUIRE(b.offered("n3") == b.id("n3/boot", 1));
  b.finish("n3");
  b.new_system("n3", "new");
  for (size_t left = pauses ? 4 : 3; left > 0; --left) b.finish("n3");
  CHECK(b.row("n3").state == NodeState::accepted);
  b.ended_as(RunState::partial);
  b.no_power();
  const auto view = run_view(b.store, 1);
  REQUIRE(view.ok());
  CHECK((*view)["nodes"][1]["reason"].get<std::string>().find("not begun") == 0);
}
