// An older copy of the database, put in its place, is recognized.
#include "controller/store/mark.h"

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <set>

#include "controller/store/sqlite_store.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

// One controller's store at a time; writes are waited for.
struct State {
  TempDir dir;
  std::unique_ptr<Store> store;

  void start(TimeMs now = 1000) {
    store.reset();
    auto opened = open_sqlite_store(
        dir.path("muster.db"), [](Reactor::Task) {}, now);
    INFO((opened.ok() ? "" : opened.error().message));
    REQUIRE(opened.ok());
    store = std::move(opened).value();
  }
  void stop() { store.reset(); }  // writes what is queued
  void write(std::vector<Write> rows) {
    store->write(std::move(rows), {});
    stop();
  }
  // The database alone, as an operator takes it from a controller that is at work, or not.
  void take(const std::string& copy) {
    std::filesystem::remove(dir.path(copy));
    REQUIRE(backup_store(dir.path("muster.db"), dir.path(copy)).ok());
  }
  void put_back(const std::string& copy) {
    stop();
    for (const char* with : {"", "-wal", "-shm"})
      std::filesystem::remove(dir.path(std::string("muster.db") + with));
    std::filesystem::copy_file(dir.path(copy), dir.path("muster.db"));
  }
};

std::vector<Write> running(int64_t id, const std::string& node) {
  RunRow run;
  run.id = id;
  run.state = RunState::running;
  run.started = 500;
  JournalRow intent;
  intent.run = id;
  intent.node = NodeName(node);
  intent.action = node + "/netboot";
  intent.attempt = 1;
  intent.event = "intent";
  intent.time = 600;
  NodeRow row;
  row.name = NodeName(node);
  row.state = NodeState::installing;
  return {run, intent, row};
}

std::vector<Write> a_node(const std::string& name) {
  NodeRow row;
  row.name = NodeName(name);
  return {row};
}

}  // namespace

TEST_CASE("the database a controller went on from is known again, however it ended", "[store][mark]") {
  State s;
  s.start();
  CHECK(s.store->restored() == 0);
  CHECK_FALSE(s.store->history().empty());
  s.write(running(1, "n1"));
  const auto kept = [&] {
    s.start();
    CHECK(s.store->restored_why().empty());
    CHECK(s.store->restored() == 0);
    CHECK(s.store->run(1)->state == RunState::running);
  };
  kept();
  SECTION("nothing was written") { kept(); }
  SECTION("the mark is behind: power was lost before it was on the disk") {
    s.stop();
    const std::string before = s.dir.read("journal.mark");
    s.start();
    s.write(a_node("n2"));
    Mark mark = Mark::open(s.dir.path("journal.mark")).value();
    auto reading = mark.read().value();
    --reading.commits;
    REQUIRE(mark.write(reading, false).ok());
    kept();
    CHECK(s.dir.read("journal.mark") != before);
  }
  SECTION("it died while a start was entered: before it was in the database") {
    s.stop();
    Mark mark = Mark::open(s.dir.path("journal.mark")).value();
    auto reading = mark.read().value();
    reading.next = "a start that never came";
    REQUIRE(mark.write(reading, false).ok());
    kept();
  }
  SECTION("it died while a start was entered: after it was in the database") {
    s.stop();
    Mark mark = Mark::open(s.dir.path("journal.mark")).value();
    auto reading = mark.read().value();
    reading.start = "the one before";
    REQUIRE(mark.write(reading, false).ok());
    kept();
  }
}

TEST_CASE("a database of a muster that kept no mark is taken as it is, once", "[store][mark]") {
  State s;
  s.start();
  s.write(running(1, "n1"));
  {
    auto db = sqlite::Connection::open(s.dir.path("muster.db"), sqlite::Mode::read_write);
    REQUIRE(db->script("UPDATE history SET name = '', start = '', commits = 0").ok());
  }
  SECTION("no mark: it was updated") {
    std::filesystem::remove(s.dir.path("journal.mark"));
    s.start();
    CHECK(s.store->restored_why().empty());
    CHECK(s.store->run(1)->state == RunState::running);
  }
  SECTION("a mark: it was updated, and then the copy of before was put back") {
    s.start();
    CHECK_FALSE(s.store->restored_why().empty());
    CHECK(s.store->run(1)->state == RunState::cancelled);
  }
}

TEST_CASE("an older copy in the place of the database ends the run it has, and says so", "[store][mark]") {
  State s;
  s.start();
  s.write(running(1, "n1"));
  s.start();
  SECTION("taken in this start, one write ago") {
    s.take("copy");
    s.write(a_node("n2"));
  }
  SECTION("taken before the last start, nothing was written since") {
    s.take("copy");
    s.start();
    s.start();
  }
  SECTION("the mark is gone: it is another machine, or another folder") {
    s.take("copy");
    s.stop();
    std::filesystem::remove(s.dir.path("journal.mark"));
  }
  SECTION("the mark is damaged") {
    s.take("copy");
    s.stop();
    s.dir.write("journal.mark", "{");
  }
  s.put_back("copy");
  s.start(7000);
  CHECK_FALSE(s.store->restored_why().empty());
  CHECK(s.store->restored() == 7000);
  const RunRow run = s.store->run(1).value();
  CHECK(run.state == RunState::cancelled);
  CHECK(run.ended == 7000);
  const auto journal = s.store->journal(1).value();
  REQUIRE(journal.size() == 2);
  CHECK(journal.back().event == "ended");
  CHECK(journal.back().data["state"] == "cancelled");
  CHECK_FALSE(journal.back().data["reason"].get<std::string>().empty());
  const auto events = s.store->events(0, 10, "").value();
  REQUIRE_FALSE(events.empty());
  CHECK(events.back().kind == "restored");
  // From here on it is the database, and stays what it says of its past.
  s.write(running(2, "n1"));
  s.start(9000);
  CHECK(s.store->restored_why().empty());
  CHECK(s.store->restored() == 7000);
  CHECK(s.store->run(2)->state == RunState::running);
}

TEST_CASE("the same copy put back twice is an older copy twice, and each time another history begins",
          "[store][mark]") {
  State s;
  s.start();
  std::set<std::string> histories{s.store->history()};
  s.write(a_node("n1"));
  s.start();
  s.take("copy");
  s.write(a_node("n2"));
  for (int i = 0; i < 2; ++i) {
    s.put_back("copy");
    s.start();
    CHECK_FALSE(s.store->restored_why().empty());
    histories.insert(s.store->history());
    s.write(a_node("n3"));
  }
  CHECK(histories.size() == 3);
}

TEST_CASE("a database that was lost is not a new cluster", "[store][mark]") {
  State s;
  s.start();
  s.write(a_node("n1"));
  for (const char* with : {"", "-wal", "-shm"})
    std::filesystem::remove(s.dir.path(std::string("muster.db") + with));
  s.start();
  CHECK_FALSE(s.store->restored_why().empty());
}
