// The new slot was committed, and the answer to that order did not arrive: the node is neither restarted nor
// switched off for it, and its reason does not say that it goes back.
#include "tests/unit/run/in_place.h"

using namespace muster;
using testing::InPlace;
using testing::kNewImage;
using wire::OrderKind;

namespace {

// Its time for the commit passes, and no agent reports.
void comes_to_the_way_back(InPlace& b) {
  b.go();
  b.reaches("n1", "commit");
  b.reactor.advance(20 * kMinute);
  REQUIRE(b.executor->log().of("n1/return").attempt == 1);
  CHECK(b.offered("n1") == "");
  CHECK(b.switched_off.empty());
}

void stays_committed(InPlace& b) {
  b.reactor.advance(kSecond);
  CHECK(b.offered("n1") == "");
  CHECK(b.shown("n1") == "not_started");
  CHECK(b.row("n1").state == NodeState::degraded);  // `up` goes on with it, in the system that it runs
  CHECK(b.row("n1").image_digest == kNewImage);
  CHECK(b.says("n1", "commit: "));
  CHECK(b.says("n1", "slot b is committed"));
  CHECK(b.says("n1", "run `muster up` to continue"));
  CHECK(b.says("n1", "not returned to service"));
  CHECK_FALSE(b.says("n1", "on trial"));
  CHECK(b.executor->log().of("n1/return").attempt == 1);
  b.ended_as(RunState::failed);
  b.no_power();
}

}  // namespace

TEST_CASE("a commit whose answer is lost counts when its agent reports no trial any more", "[run][slot]") {
  InPlace b;
  b.go();
  b.reaches("n1", "commit");
  const std::string order = b.offered("n1");
  SECTION("its time passes") {
    for (int i = 0; i < 36; ++i) {
      b.asks("n1", "new", true, false);
      b.reactor.advance(20 * kSecond);
    }
  }
  SECTION("its agent cannot say what became of it") {
    b.asks("n1", "new", true, false);
    b.fails("n1");
  }
  CHECK(b.is_committed("n1"));
  CHECK(std::count(b.withdrawn.begin(), b.withdrawn.end(), order) == 1);
  CHECK(b.executor->log().of("n1/return").state == ActionState::fresh);
  REQUIRE(b.offered("n1") == b.id("n1/resume", 1));
  b.finish("n1");
  CHECK(b.row("n1").state == NodeState::accepted);
  CHECK(b.row("n1").accepted_run == 1);
  b.ended_as(RunState::done);
  b.no_power();
}

TEST_CASE("a commit that comes to light on the way back ends that way where the node stands", "[run][slot]") {
  InPlace b;
  comes_to_the_way_back(b);
  SECTION("with the first request for orders") { b.asks("n1", "new", true, false); }
  SECTION("events first: what they bring on offer is taken back") {
    b.executor->on_contact("n1", {"n1-new"});
    b.reactor.advance(100);
    REQUIRE(b.on_offer("n1/return", OrderKind::reboot));
    b.asks("n1", "new", true, false);
  }
  SECTION("it had lost its power, and boots what stands") {
    b.hello("n1", wire::Mode::installed, "n1-third", kNewImage, "b", false);
  }
  SECTION("it was restarted by an order that had gone out") {
    b.executor->on_contact("n1", {"n1-new"});
    b.reactor.advance(100);
    b.finish("n1");
    b.hello("n1", wire::Mode::installed, "n1-third", kNewImage, "b", false);
  }
  SECTION("the controller is killed meanwhile") {
    b.killed();
    CHECK(b.offered("n1") == "");
    b.asks("n1", "new", true, false);
  }
  stays_committed(b);
}

TEST_CASE("a commit that was ordered and not carried out is no commit", "[run][slot]") {
  InPlace b;
  SECTION("its agent reports the trial") {
    comes_to_the_way_back(b);
    b.asks("n1", "new", true, true);
  }
  SECTION("its agent is of an earlier version, which reports none") {
    b.go();
    b.reaches("n1", "boot");
    b.finish("n1");
    b.hello("n1", wire::Mode::installed, "n1-new", kNewImage, "b", false);
    for (const char* name : {"configure", "accept"}) {
      REQUIRE(b.offered("n1") == b.id(std::string("n1/") + name, 1));
      b.finish("n1");
    }
    b.fails("n1");
  }
  SECTION("no trial is reported, and the commit was not ordered") {
    b.go();
    b.reaches("n1", "accept");
    b.asks("n1", "new", true, false);
    b.verdict = fail(Code::denied, "dgemm: broken");
    for (int tries = 0; tries < 3 && b.offered("n1").str().find("/accept") != std::string::npos; ++tries) {
      b.finish("n1");
      b.reactor.advance(6 * kSecond);
    }
  }
  REQUIRE(b.on_offer("n1/return", OrderKind::reboot));
  b.finish("n1");
  b.old_system("n1", "back");
  b.finish("n1");
  b.is_back("n1");
  b.no_power();
}

TEST_CASE("a node that may stand in its new slot is not switched off for its silence, until its time is over",
          "[run][slot]") {
  InPlace b;
  comes_to_the_way_back(b);
  b.reactor.advance(40 * kMinute);
  CHECK(b.switched_off.size() == 1);
}
