#include "controller/bringup/planning_snapshot.h"

#include "controller/executor/node_table.h"
#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fakes/mem_store.h"

using namespace muster;

namespace {

Action action_of(ActionKind kind, Json params = Json::object()) {
  Action a;
  a.id = "n1/write";
  a.node = "n1";
  a.kind = kind;
  a.params = std::move(params);
  return a;
}

HardwareFacts facts() {
  HardwareFacts out;
  out.boot.running = out.boot.standing = "a";
  out.boot.slots["a"] = {"cpu", "sha256:cpu", "written", ""};
  out.boot.slots["b"] = {"cpu", "sha256:before", "written", ""};
  return out;
}

// Rows of nodes over a store in memory.
struct Book {
  ManualReactor reactor;
  MemStore store{reactor};
  JournalWriter journal{reactor, store};
  NodeTable book{reactor, store, journal, kMinute};

  std::map<std::string, TimeMs> written() { return book.row("n1").disk_written; }
  std::vector<Write> begun(const Action& action, TimeMs time) { return book.begun("n1", action, time); }
};

}  // namespace

TEST_CASE("disks written: nothing that was seen before an installation counts", "[bringup]") {
  const std::map<std::string, TimeMs> written = {{"", 100}};
  CHECK_FALSE(still_known(facts(), written_since(written, 99)));
  CHECK_FALSE(still_known(facts(), written_since(written, 100)));  // which came first is not known
  CHECK(still_known(facts(), written_since(written, 101)));        // it was looked at since
  CHECK(still_known(facts(), {}));
}

TEST_CASE("disks written: the slot beside the jobs counts as half written, and the rest as it was seen",
          "[bringup]") {
  const std::map<std::string, TimeMs> written = {{"b", 100}};
  const auto known = still_known(facts(), written_since(written, 99));
  REQUIRE(known);
  CHECK(known->boot.slots.at("b").stage == "writing");
  CHECK(known->boot.slots.at("a").stage == "written");
  CHECK(known->boot.running == "a");
  CHECK(still_known(facts(), written_since(written, 101))->boot.slots.at("b").stage == "written");
}

TEST_CASE("disks written: the row of the node says so, with the intent", "[bringup]") {
  Book b;
  const auto rows = b.begun(action_of(ActionKind::image), 100);
  REQUIRE(rows.size() == 1);
  const auto* row = std::get_if<NodeRow>(&rows.front());
  REQUIRE(row);
  CHECK(row->disk_written == std::map<std::string, TimeMs>{{"", 100}});
  CHECK(b.written() == row->disk_written);  // at once: a plan that is made now is made with it
}

TEST_CASE("disks written: the action says what it writes, whatever it is called", "[bringup]") {
  Book b;
  for (const ActionKind kind :
       {ActionKind::netboot, ActionKind::inventory, ActionKind::boot_disk, ActionKind::steps,
        ActionKind::check, ActionKind::reboot, ActionKind::power_off, ActionKind::wake, ActionKind::boot_slot,
        ActionKind::return_slot})
    CHECK(b.begun(action_of(kind), 100).empty());
  CHECK(b.written().empty());
  REQUIRE(b.begun(action_of(ActionKind::write_slot, {{"slot", "b"}}), 100).size() == 1);
  CHECK(b.written() == std::map<std::string, TimeMs>{{"b", 100}});
  // A slot without a name may be any.
  for (const Json& params : {Json::object(), Json{{"slot", 1}}}) {
    Book other;
    REQUIRE(other.begun(action_of(ActionKind::write_slot, params), 100).size() == 1);
    CHECK(other.written() == std::map<std::string, TimeMs>{{"", 100}});
  }
}

TEST_CASE("disks written: the last beginning counts, also by a clock that was set back", "[bringup]") {
  Book b;
  (void)b.begun(action_of(ActionKind::image), 100);
  (void)b.begun(action_of(ActionKind::image), 300);
  (void)b.begun(action_of(ActionKind::image), 200);
  CHECK(b.written() == std::map<std::string, TimeMs>{{"", 300}});
}
