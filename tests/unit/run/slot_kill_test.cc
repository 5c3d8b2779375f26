// The controller is killed at every point of a re-image in place: the end is the one it would have been.
#include <functional>

#include "tests/unit/run/in_place.h"

using namespace muster;
using testing::InPlace;
using wire::OrderKind;

namespace {

struct Move {
  std::string what;
  std::function<void(InPlace&)> make;
  // Of the agent that is there then: it reports to the restarted controller. Empty: none does.
  std::string boot;
  bool fresh = false;
};
using Script = std::vector<Move>;

Move done(const std::string& action, const std::string& boot, bool fresh) {
  return {action,
          [action](InPlace& b) {
            REQUIRE(b.offered("n1") == b.id("n1/" + action, 1));
            b.finish("n1");
          },
          boot, fresh};
}
Move fails(const std::string& action, const std::string& boot, bool fresh) {
  return {action + " fails",
          [action](InPlace& b) {
            REQUIRE(b.offered("n1") == b.id("n1/" + action, 1));
            b.fails("n1");
          },
          boot, fresh};
}
Move old_system(const std::string& boot) {
  return {"the old system", [boot](InPlace& b) { b.old_system("n1", boot); }, boot, false};
}
Move new_system() {
  return {"the new system", [](InPlace& b) { b.new_system("n1", "new"); }, "new", true};
}
Script until(const std::string& last) {
  Script script = {done("write", "old", false), done("pause", "old", false), done("boot", "", false),
                   new_system()};
  for (const char* name : {"configure", "accept", "commit", "resume"}) {
    if (last == name) break;
    script.push_back(done(name, "new", true));
  }
  return script;
}

// The way back from the new system.
void leave(Script& script) {
  script.push_back(done("return", "", true));
  script.push_back(old_system("back"));
  script.push_back(done("resume-old", "back", false));
}

// Plays the script, and kills the controller behind the move of that number.
void play(InPlace& b, const Script& script, size_t killed_behind) {
  b.go();
  for (size_t i = 0; i < script.size(); ++i) {
    INFO(script[i].what);
    script[i].make(b);
    if (i != killed_behind || !b.ended.empty()) continue;
    b.killed();
    if (!script[i].boot.empty()) b.asks("n1", script[i].boot, script[i].fresh);
  }
  b.reactor.advance(kSecond);
}

}  // namespace

TEST_CASE("killed anywhere, a controller goes on with a re-image that works", "[run][slot]") {
  const Script script = until("");
  for (size_t at = 0; at < script.size(); ++at) {
    INFO("killed behind move " << at << ", " << script[at].what);
    InPlace b;
    play(b, script, at);
    CHECK(b.row("n1").state == NodeState::accepted);
    CHECK(b.row("n1").accepted_run == 1);
    CHECK(b.row("n1").config_digest == "sha256:conf-new");
    CHECK(b.executor->log().of("n1/boot").attempt == 1);
    b.ended_as(RunState::done);
    b.no_power();
  }
}

TEST_CASE("killed anywhere, a controller goes on with the way back", "[run][slot]") {
  Script script;
  SECTION("the slot cannot be written") { script = {fails("write", "old", false)}; }
  SECTION("its jobs do not end") {
    script = {done("write", "old", false), fails("pause", "old", false), done("resume-old", "old", false)};
  }
  SECTION("the trial ended") {
    script = {done("write", "old", false), done("pause", "old", false), done("boot", "", false),
              old_system("back"), done("resume-old", "back", false)};
  }
  SECTION("the new system fails") {
    const std::string at = GENERATE("configure", "commit");
    script = until(at);
    script.push_back(fails(at, "new", true));
    leave(script);
  }
  for (size_t at = 0; at < script.size(); ++at) {
    INFO("killed behind move " << at << ", " << script[at].what);
    InPlace b;
    play(b, script, at);
    b.is_back("n1");
    CHECK(b.says("n1", script.size() == 5 ? "it came back in slot a" : "broken"));
    b.ended_as(RunState::partial);
    b.no_power();
  }
}

TEST_CASE("killed on the way back of a node that was not paused, a controller passes over its resume",
          "[run][slot]") {
  bool came_to_its_end = false;
  for (int ms = 0; ms < 50 && !came_to_its_end; ++ms) {
    CAPTURE(ms);
    InPlace b;
    Action look = testing::action("n1", "look-old", ActionKind::inventory);
    look.when_failed = true;
    b.plan.actions.push_back(look);
    b.go();
    REQUIRE(b.on_offer("n1/write", OrderKind::write_slot));
    wire::Event failed;
    failed.order = b.offered("n1");
    failed.kind = "finished";
    failed.data = {{"ok", false}, {"code", "denied"}, {"message", "broken"}};
    b.executor->on_event("n1", failed);
    b.reactor.advance(ms);
    came_to_its_end = b.on_offer("n1/look-old", OrderKind::inventory);
    b.store.crash(MemStore::Unsynced::lost);
    b.killed();
    b.asks("n1", "old", false);
    if (b.on_offer("n1/write", OrderKind::write_slot)) b.fails("n1");  // that was not durable
    REQUIRE(b.on_offer("n1/look-old", OrderKind::inventory));
    b.finish("n1", true, "", {{"facts", {{"system", {{"uuid", "abc"}}}}}});
    b.is_back("n1");
    CHECK(b.executor->log().of("n1/resume-old").state == ActionState::fresh);
  }
  CHECK(came_to_its_end);
}

TEST_CASE("a report that got lost is no lost trial", "[run][slot]") {
  InPlace b;
  b.go();
  b.reaches("n1", "boot");
  SECTION("the new system is there before it") { b.new_system("n1", "new"); }
  SECTION("the controller was killed meanwhile, and the machine restarts") {
    b.killed();
    b.reactor.advance(3 * kMinute);
    CHECK(b.switched_off.empty());
    b.asks("n1", "new", true);
  }
  SECTION("the new system says it to a controller that was killed, events first") {
    b.killed();
    b.executor->on_contact("n1", {"n1-new"});  // events come without a word about the system
    b.reactor.advance(100);
    b.asks("n1", "new", true);
  }
  SECTION("and its hello was heard by the life before, its slot not by this one") {
    const auto one_row = [&](const NodeRow& row) { b.store.write({row}, [](Status) {}); };
    b.executor.reset();
    NodeRow row = b.row("n1");
    row.boot_id = "n1-new", row.image_digest = testing::kNewImage;
    one_row(row);
    b.reactor.advance(100);
    b.killed();
    b.executor->on_contact("n1", {"n1-new"});
    b.reactor.advance(100);
    CHECK(b.offered("n1") == "");  // not once more
    CHECK(b.executor->log().of("n1/boot").state == ActionState::intent);
    b.asks("n1", "new", true);
  }
  CHECK(b.offered("n1") == b.id("n1/configure", 1));
  b.no_power();
}

TEST_CASE("a controller that comes back asks the same agent again under the same id", "[run][slot]") {
  InPlace b;
  b.go();
  b.reaches("n1", "boot");
  b.killed();
  b.asks("n1", "old", false);
  REQUIRE(b.on_offer("n1/boot", OrderKind::boot_slot));
  b.finish("n1");  // its journal answers
  b.new_system("n1", "new");
  CHECK(b.offered("n1") == b.id("n1/configure", 1));
}

TEST_CASE("a controller killed between power off and power on does not leave the machine off",
          "[run][slot]") {
  InPlace b;
  b.go();
  b.reaches("n1", "boot");
  b.finish("n1");
  b.off_answers = std::vector<Status>(500, fail(Code::timeout, "no answer"));
  b.reactor.advance(42 * kMinute);
  REQUIRE_FALSE(b.switched_off.empty());
  REQUIRE(b.switched_on.empty());
  b.power_state = PowerState::off;
  b.killed();
  b.reactor.advance(3 * kMinute);
  CHECK_FALSE(b.switched_on.empty());
  b.old_system("n1", "back");
  b.finish("n1");
  b.is_back("n1");
}

TEST_CASE("of a node that is back, events alone do not make a node in the wrong system", "[run][slot]") {
  InPlace b;
  b.go();
  b.reaches("n1", "configure");
  b.killed();
  b.executor->on_contact("n1", {"n1-new"});
  b.reactor.advance(100);
  CHECK(b.offered("n1") == b.id("n1/configure", 1));
  b.fails("n1");
  CHECK(b.offered("n1") == "");  // the order to restart waits for a word about its slot
  b.asks("n1", "new", true);
  CHECK(b.on_offer("n1/return", OrderKind::reboot));
}
