// What the controller takes from agents about a boot that is on trial.
#include "tests/unit/run/bench.h"

using namespace muster;
using Bench = testing::RunBench;

namespace {

struct Heard : Bench {
  Heard() { live(); }
  void greets(const std::string& boot, bool trial) {
    Hello hello{"n1", wire::Mode::installed, boot, "sha256:x", "b"};
    hello.trial = trial;
    executor->on_hello(hello);
    reactor.advance(100);
  }
  void asks(const std::string& boot, bool trial, std::optional<wire::Mode> mode = wire::Mode::installed) {
    Presence present;
    present.boot_id = boot;
    present.mode = mode;
    present.image_digest = "sha256:x";
    present.slot = mode ? "b" : "";
    present.trial = trial;
    executor->on_contact("n1", present);
    reactor.advance(100);
  }
  bool on_trial() const { return executor->on_trial("n1"); }
};

}  // namespace

TEST_CASE("a trial is what the last hello or request says, and is ended by it", "[run][in-place]") {
  Heard b;
  CHECK_FALSE(b.on_trial());  // no agent reported
  CHECK_FALSE(b.executor->on_trial("n2"));
  b.greets("boot1", true);
  CHECK(b.on_trial());
  SECTION("committed") { b.asks("boot1", false); }
  SECTION("committed, and the agent starts again") { b.greets("boot1", false); }
  SECTION("another boot") { b.greets("boot2", false); }
  SECTION("another boot into the RAM system") { b.hello("n1", wire::Mode::ram, "boot2"); }
  CHECK_FALSE(b.on_trial());
  b.asks("boot1", false);
  CHECK_FALSE(b.on_trial());
}

TEST_CASE("events alone say nothing about a trial", "[run][in-place]") {
  Heard b;
  b.greets("boot1", true);
  b.asks("boot1", false, std::nullopt);
  CHECK(b.on_trial());
}

TEST_CASE("the trial of a boot whose hello is on its way is not that of the boot before", "[run][in-place]") {
  Heard b;
  b.greets("boot1", false);
  b.asks("boot2", true);
  CHECK_FALSE(b.on_trial());
  b.greets("boot2", true);
  CHECK(b.on_trial());
  b.asks("boot1", false);  // overtaken
  CHECK(b.on_trial());
}

TEST_CASE("a controller that starts again knows of a trial with the first request", "[run][in-place]") {
  Heard b;
  b.greets("boot1", true);
  b.restart();
  CHECK_FALSE(b.on_trial());
  SECTION("a request") { b.asks("boot1", true); }
  SECTION("events, then a request") {
    b.asks("boot1", false, std::nullopt);
    CHECK_FALSE(b.on_trial());
    b.asks("boot1", true);
  }
  CHECK(b.on_trial());
}
