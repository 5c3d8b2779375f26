// A node at work is re-imaged through the RAM system: it stays what it was where its jobs do not end, and is
// quarantined by everything that fails behind that.
#include "tests/unit/run/in_place.h"

using namespace muster;
using testing::InPlace;
using testing::kNewImage;
using testing::kOldImage;
using wire::OrderKind;

namespace {

const Json kLook = {{"id", "scheduler/no new jobs"}, {"module", "slurm_node"}, {"params", Json::object()}};

struct RamWay : InPlace {
  static std::vector<std::string> way() {
    return {"pause", "netboot", "image", "boot", "configure", "accept", "resume"};
  }

  explicit RamWay(const std::string& state = "accepted") : InPlace(std::vector<std::string>{}) {
    for (const auto& name : way()) {
      Action a = testing::action("n1", name, ActionKind::steps);
      if (name == "pause") a.max_attempts = 1;
      if (name == "netboot") a.kind = ActionKind::netboot;
      if (name == "image") a.kind = ActionKind::image;
      if (name == "boot") a.kind = ActionKind::boot_disk, a.params = {{"digest", kNewImage}};
      if (name == "accept") a.kind = ActionKind::check;
      add(a);
    }
    Action back = testing::action("n1", "return", ActionKind::return_slot,
                                  {{"slot", "a"}, {"digest", kOldImage}, {"state", state}});
    back.timeout = 40 * kMinute;
    back.when_failed = true;
    add(back);
    Action resume = testing::action("n1", "resume-old", ActionKind::steps);
    resume.phase = "resume";
    resume.when_failed = true;
    add(resume);
    executor->set_node("n1", [](NodeRow& row) {
      row.state = NodeState::accepted;
      row.accepted_run = 7;
      row.config_digest = "sha256:conf-old";
    });
    plan.config_digests["n1"] = "sha256:conf-new";
    old_system("n1", "old");
  }
  // The order that takes it from its jobs has the steps of its pause as preconditions.
  void proves(bool by_itself = false) {
    if (by_itself) without_bmc = {"n1"};
    for (Action& a : plan.actions)
      if (a.kind == ActionKind::netboot) a.params.set_own("steps", Json::array({kLook})), a.max_attempts = 3;
  }
  OrderId leaves() {
    REQUIRE(offered("n1").str().find("n1/netboot#") != std::string::npos);
    CHECK(offers["n1"].preconditions == Json::array({kLook}));
    return offered("n1");
  }
  void refuses() { finish("n1", false, "conflict", {{"precondition", "scheduler/no new jobs"}}); }
  void powers_off() {
    power_state = PowerState::off;
    reactor.advance(10 * kSecond);
    power_state = PowerState::on;
  }
  // Its installed system is stopped in order, and then its power is cycled.
  void stops() {
    REQUIRE(offered("n1") == id("n1/netboot", 1) + "-stop");
    power_state = PowerState::off;
    reactor.advance(10 * kSecond);
    power_state = PowerState::on;
  }
  // Everything before this action went well; it is under way now.
  void comes_to(const std::string& last) {
    for (const auto& name : way()) {
      if (name == last) return;
      if (name == "netboot") {
        stops();
        REQUIRE(powered == std::vector<std::string>{"n1"});
        hello("n1", wire::Mode::ram, "n1-ram");
        continue;
      }
      REQUIRE(offered("n1") == id("n1/" + name, 1));
      finish("n1");
      if (name == "boot") hello("n1", wire::Mode::installed, "n1-new", kNewImage, "b");
    }
  }
  void returned_by_itself(NodeState state = NodeState::accepted) {
    is_back("n1", state);
    ended_as(RunState::partial);
    no_power();
    CHECK(armed.empty());
    CHECK(executor->log().of("n1/netboot").attempt == 0);
  }
  void is_quarantined() {
    CHECK(row("n1").state == NodeState::quarantined);
    CHECK(says("n1", "the node was not returned to service in the scheduler and storage"));
    CHECK(says("n1", "\"Left behind\" in docs/reimage.md"));
    CHECK(shown("n1") != "returned");
    CHECK(executor->log().of("n1/return").state == ActionState::fresh);
    CHECK(executor->log().of("n1/resume-old").state == ActionState::fresh);
    CHECK(offered("n1") == "");
    ended_as(RunState::failed);
  }
};

}  // namespace

TEST_CASE("a node whose jobs do not end is not re-imaged, and works on as what it was", "[run][slot]") {
  const std::string state = GENERATE("accepted", "degraded");
  RamWay b(state);
  b.go();
  REQUIRE(b.on_offer("n1/pause", OrderKind::steps));
  b.fails("n1");
  CHECK(b.executor->why("n1")["returning"] == true);
  CHECK(b.on_offer("n1/resume-old", OrderKind::steps));  // nothing was left that a restart would bring back
  CHECK(b.ended.empty());
  b.finish("n1");
  CHECK(b.says("n1", "pause: "));
  CHECK(b.says("n1", "broken"));
  CHECK(b.executor->log().of("n1/return").state == ActionState::succeeded);
  b.returned_by_itself(state == "accepted" ? NodeState::accepted : NodeState::degraded);
}

TEST_CASE("a node that falls silent while its jobs are waited for keeps its power", "[run][slot]") {
  RamWay b;
  b.go();
  b.reactor.advance(20 * kMinute);  // the time of its pause
  CHECK(b.executor->log().of("n1/pause").state == ActionState::abandoned);
  CHECK(b.executor->log().of("n1/return").attempt == 1);
  CHECK(b.offered("n1") == "");
  SECTION("it is heard again") {
    b.asks("n1", "old", false);
    REQUIRE(b.on_offer("n1/resume-old", OrderKind::steps));
    b.finish("n1");
    b.returned_by_itself();
  }
  SECTION("it is not") {
    b.reactor.advance(60 * kMinute);
    CHECK(b.row("n1").state == NodeState::quarantined);
    CHECK(b.says("n1", "pause: "));
    CHECK(b.says("n1", "and the return to the old system failed: "));
    b.ended_as(RunState::failed);
    b.no_power();
  }
}

TEST_CASE("killed while it gives a paused node back, a controller goes on with that", "[run][slot]") {
  const std::string killed = GENERATE("in the pause", "on its way back");
  CAPTURE(killed);
  RamWay b;
  const auto dies = [&](const std::string& when) {
    if (killed != when) return;
    b.killed();
    b.asks("n1", "old", false);
  };
  b.go();
  dies("in the pause");
  REQUIRE(b.on_offer("n1/pause", OrderKind::steps));
  b.fails("n1");
  dies("on its way back");
  REQUIRE(b.on_offer("n1/resume-old", OrderKind::steps));  // under the same id
  b.finish("n1");
  b.returned_by_itself();
}

TEST_CASE("where the steps that give a paused node back fail, it has both reasons", "[run][slot]") {
  RamWay b;
  b.go();
  b.fails("n1");
  REQUIRE(b.on_offer("n1/resume-old", OrderKind::steps));
  b.fails("n1");
  CHECK(b.row("n1").state == NodeState::quarantined);
  CHECK(b.says("n1", "pause: "));
  CHECK(b.says("n1", "and the return to the old system failed: "));
  b.ended_as(RunState::failed);
  b.no_power();
}

TEST_CASE("behind its pause, a node on the way through the RAM system has no way back", "[run][slot]") {
  RamWay b;
  b.go();
  SECTION("its power is not switched") {
    b.comes_to("netboot");
    b.power_answers = {fail(Code::denied, "403")};
    b.stops();
    CHECK(b.says("n1", "netboot: "));
  }
  SECTION("its image cannot be written") {
    b.comes_to("image");
    REQUIRE(b.on_offer("n1/image", OrderKind::image));
    b.fails("n1");
    CHECK(b.says("n1", "image: "));
    CHECK(b.says("n1", "broken"));
  }
  SECTION("the new system cannot be configured") {
    b.comes_to("configure");
    REQUIRE(b.on_offer("n1/configure", OrderKind::steps));
    b.fails("n1");
    CHECK(b.says("n1", "configure: "));
  }
  SECTION("it does not go back to its work") {
    b.comes_to("resume");
    REQUIRE(b.on_offer("n1/resume", OrderKind::steps));
    b.fails("n1");
    CHECK(b.says("n1", "resume: "));
  }
  b.is_quarantined();
}

TEST_CASE("a paused node that an operator quarantines is not given back", "[run][slot]") {
  RamWay b;
  b.go();
  REQUIRE(b.on_offer("n1/pause", OrderKind::steps));
  b.executor->quarantine("n1", "by an operator");
  b.reactor.advance(kSecond);
  CHECK(b.says("n1", "by an operator"));
  b.is_quarantined();
  b.no_power();
}

TEST_CASE("a paused node is re-imaged through the RAM system, and nothing of its way back is done",
          "[run][slot]") {
  RamWay b;
  b.go();
  b.comes_to("");
  b.ended_as(RunState::done);
  CHECK(b.row("n1").state == NodeState::accepted);
  CHECK(b.row("n1").accepted_run == 1);
  CHECK(b.row("n1").config_digest == "sha256:conf-new");
  CHECK(b.row("n1").image_digest == kNewImage);
  CHECK(b.executor->log().of("n1/return").state == ActionState::fresh);
  CHECK(b.executor->log().of("n1/resume-old").state == ActionState::fresh);
}

TEST_CASE("a node that has jobs again keeps its power, and works on as what it was", "[run][slot]") {
  RamWay b;
  b.proves(GENERATE(false, true));
  b.go();
  b.comes_to("netboot");
  const OrderId order = b.leaves();
  b.refuses();
  CHECK(b.offered("n1") != order);
  REQUIRE(b.on_offer("n1/resume-old", OrderKind::steps));
  b.finish("n1");
  b.is_back("n1", NodeState::accepted, "not re-imaged: ");
  b.ended_as(RunState::partial);
  b.no_power();
  CHECK(b.armed.empty());
  CHECK(b.counts_as_kept());
}

TEST_CASE("a node without jobs is switched once its agent has confirmed that", "[run][slot]") {
  RamWay b;
  b.proves();
  b.go();
  b.comes_to("netboot");
  b.leaves();
  b.reactor.advance(kMinute);
  CHECK(b.powered.empty());
  b.finish("n1");
  SECTION("it shuts down") { b.powers_off(); }
  SECTION("it does not: its power is cut then") { b.reactor.advance(4 * kMinute); }
  SECTION("the controller is killed meanwhile, and need not be told again") {
    b.killed();
    for (int i = 0; i < 8; ++i) b.asks("n1", "old", false), b.reactor.advance(15 * kSecond);
    REQUIRE(b.offered("n1") == b.id("n1/netboot", 1) + "-stop");
    CHECK(b.offers["n1"].preconditions.is_null());
    b.powers_off();
  }
  CHECK(b.powered == std::vector<std::string>{"n1"});
  b.hello("n1", wire::Mode::ram, "n1-ram");
  CHECK(b.on_offer("n1/image", OrderKind::image));
}

TEST_CASE("the power of a node that does not confirm is not cut, unless it is off anyhow", "[run][slot]") {
  RamWay b;
  b.proves();
  b.go();
  b.comes_to("netboot");
  b.leaves();
  SECTION("silent, and on") {
    b.reactor.advance(5 * kMinute);
    b.no_power();
    CHECK(b.executor->why("n1")["returning"] == true);
  }
  SECTION("off") {
    b.powers_off();
    CHECK(b.powered == std::vector<std::string>{"n1"});
  }
}

TEST_CASE("a node that is back in its old system confirms again, under another order", "[run][slot]") {
  RamWay b;
  b.proves();
  b.go();
  b.comes_to("netboot");
  const OrderId first = b.leaves();
  b.finish("n1");
  b.powers_off();
  REQUIRE(b.powered.size() == 1);
  b.old_system("n1", "again");  // its firmware started the disk
  b.reactor.advance(10 * kSecond);
  b.asks("n1", "again", false);
  const OrderId second = b.leaves();
  CHECK(second != first);
  CHECK(b.powered.size() == 1);
  SECTION("it has jobs") {
    b.refuses();
    CHECK(b.powered.size() == 1);
    CHECK(b.executor->why("n1")["returning"] == true);
  }
  SECTION("it has none") {
    b.finish("n1");
    b.powers_off();
    CHECK(b.powered.size() == 2);
  }
}

TEST_CASE("before jobs are waited for, what would end a hang must answer", "[run][slot]") {
  InPlace b;
  b.go();
  b.power_state = fail(Code::unavailable, "no answer");
  SECTION("it does not") {
    b.finish("n1");
    CHECK(b.offered("n1") == "");
    b.reactor.advance(3 * kMinute);
    CHECK(b.executor->why("n1")["returning"] == true);
    b.asks("n1", "old", false);
    b.finish("n1");
    b.is_back("n1");
    CHECK(b.says("n1", "no answer"));
    CHECK(b.counts_as_kept());
  }
  SECTION("it was busy") {
    b.finish("n1");
    b.reactor.advance(30 * kSecond);
    b.power_state = PowerState::on;
    b.reactor.advance(30 * kSecond);
    CHECK(b.on_offer("n1/pause", OrderKind::steps));
  }
  SECTION("there is none") {
    b.without_bmc = {"n1"};
    b.killed();
    b.asks("n1", "old", false);
    b.finish("n1");
    CHECK(b.on_offer("n1/pause", OrderKind::steps));
  }
  b.no_power();
}

TEST_CASE("before jobs are waited for, the BMC that is to start the RAM system must answer", "[run][slot]") {
  RamWay b;
  b.power_state = fail(Code::unavailable, "no answer");
  SECTION("it does not") {
    b.go();
    CHECK(b.offered("n1") == "");
    b.reactor.advance(3 * kMinute);
    CHECK(b.executor->why("n1")["returning"] == true);
    b.asks("n1", "old", false);
    REQUIRE(b.on_offer("n1/resume-old", OrderKind::steps));
    b.finish("n1");
    b.returned_by_itself();
    CHECK(b.says("n1", "no answer"));
    CHECK(b.counts_as_kept());
  }
  SECTION("it was busy") {
    b.go();
    CHECK(b.offered("n1") == "");
    b.reactor.advance(30 * kSecond);
    b.power_state = PowerState::on;
    b.reactor.advance(30 * kSecond);
    CHECK(b.on_offer("n1/pause", OrderKind::steps));
    b.no_power();
  }
  SECTION("there is none") {
    b.without_bmc = {"n1"};
    b.go();
    CHECK(b.on_offer("n1/pause", OrderKind::steps));
  }
}

// The pause may have lasted for hours when its controller is replaced.
TEST_CASE("a controller that restarts in a pause", "[run][slot]") {
  RamWay b;
  b.proves();
  b.go();
  REQUIRE(b.on_offer("n1/pause", OrderKind::steps));
  b.executor->on_event("n1", {1, 0, b.offered("n1"), "started", Json::object()});
  for (int i = 0; i < 20; ++i) b.asks("n1", "old", false), b.reactor.advance(15 * kSecond);
  SECTION("has the node confirm afterwards that it may leave") {
    b.killed();
    b.asks("n1", "old", false);
    b.finish("n1");
    b.leaves();
    b.reactor.advance(kMinute);
    b.no_power();
  }
  SECTION("does not give it back because the BMC answers a little later") {
    b.power_state = fail(Code::unavailable, "no answer");
    b.killed();
    b.asks("n1", "old", false);
    CHECK(b.on_offer("n1/pause", OrderKind::steps));
    CHECK(b.executor->why("n1")["returning"] != true);
  }
}
