#include "controller/bringup/disks_written.h"

#include "tests/catch.h"

using namespace muster;

namespace {

Plan plan_of(const std::string& name, ActionKind kind, Json params = Json::object()) {
  Plan plan;
  Action a;
  a.id = "n1/" + name;
  a.node = "n1";
  a.kind = kind;
  a.params = std::move(params);
  plan.actions.push_back(a);
  return plan;
}

JournalRow row(const std::string& name, const std::string& event, TimeMs time) {
  JournalRow out;
  out.node = "n1";
  out.action = "n1/" + name;
  out.event = event;
  out.time = time;
  return out;
}

HardwareFacts facts() {
  HardwareFacts out;
  out.boot.running = out.boot.standing = "a";
  out.boot.slots["a"] = {"cpu", "sha256:cpu", "written", ""};
  out.boot.slots["b"] = {"cpu", "sha256:before", "written", ""};
  return out;
}

}  // namespace

TEST_CASE("disks written: nothing that was seen before an installation counts", "[bringup]") {
  Written written;
  note_written(plan_of("image", ActionKind::image), {row("image", "intent", 100)}, 50, written);
  CHECK_FALSE(still_known(facts(), 99, "n1", written));
  CHECK(still_known(facts(), 100, "n1", written));  // it was looked at since
  CHECK(still_known(facts(), 99, "n2", written));
}

TEST_CASE("disks written: the slot beside the jobs counts as half written, and the rest as it was seen",
          "[bringup]") {
  Written written;
  note_written(plan_of("write", ActionKind::write_slot, {{"slot", "b"}}), {row("write", "intent", 100)}, 50,
               written);
  const auto known = still_known(facts(), 99, "n1", written);
  REQUIRE(known);
  CHECK(known->boot.slots.at("b").stage == "writing");
  CHECK(known->boot.slots.at("a").stage == "written");
  CHECK(known->boot.running == "a");
  CHECK(still_known(facts(), 100, "n1", written)->boot.slots.at("b").stage == "written");
}

TEST_CASE("disks written: only what begins to write, and all where the plan is lost", "[bringup]") {
  const Plan plan = plan_of("image", ActionKind::image);
  Written written;
  note_written(plan, {row("image", "succeeded", 100), row("configure", "intent", 100)}, 50, written);
  note_written(plan, {row("image", "intent", 50)}, 50, written);  // of before
  CHECK(written.empty());
  note_written(plan_of("write", ActionKind::write_slot), {row("write", "intent", 100)}, 50, written);
  CHECK_FALSE(still_known(facts(), 99, "n1", written));  // a slot without a name
  written.clear();
  note_written(std::nullopt, {row("configure", "intent", 100)}, 50, written);
  CHECK_FALSE(still_known(facts(), 99, "n1", written));
}
