// The file of the database gets smaller when old events go, also one that an older version made.
#include <filesystem>

#include "controller/store/sqlite_store.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

constexpr int kEvents = 6000;  // of 2 KB each: 12 MB

struct Kept {
  const TempDir dir;
  const std::string path = dir.path("muster.db");

  std::unique_ptr<Store> open() const {
    auto opened = open_sqlite_store(path, [](Reactor::Task) {});
    REQUIRE(opened.ok());
    return std::move(opened).value();
  }
  // As of a store that is closed: then all is written, and in the file itself.
  uintmax_t bytes() const { return std::filesystem::file_size(path); }
  void fill() const {
    std::vector<Write> batch;
    for (int i = 0; i < kEvents; ++i)
      batch.push_back(EventRow{0, i, 1, "gpu01", "log", std::string(2000, 'x')});
    open()->write(std::move(batch), {});
  }
  void purge(TimeMs before, int slices) const {
    const auto store = open();
    for (int i = 0; i < slices; ++i) store->write({PurgeEvents{before, kEvents, 500}}, {});
  }
  void script(const std::string& sql) const {
    auto db = sqlite::Connection::open(path, sqlite::Mode::read_write);
    REQUIRE(db.ok());
    REQUIRE(db->script(sql).ok());
  }
  int64_t number(const char* sql) const {
    auto db = sqlite::Connection::open(path, sqlite::Mode::read_only);
    REQUIRE(db.ok());
    return db->number(sql).value();
  }
};

}  // namespace

TEST_CASE("the space of purged events goes back to the file system", "[store]") {
  const Kept k;
  k.fill();
  const uintmax_t before = k.bytes();
  k.purge(kEvents - 10, 40);
  CHECK(k.bytes() < before / 2);
  const auto store = k.open();
  CHECK(store->events({.limit = 100})->size() == 10);
  CHECK_FALSE(*store->would_purge({kEvents - 10, kEvents, 500}));
}

TEST_CASE("one purge is a small piece of work", "[store]") {
  const Kept k;
  k.fill();
  k.purge(kEvents, 1);
  CHECK(k.number("SELECT count(*) FROM event") == kEvents - 500);
}

TEST_CASE("a database of an older version is rewritten once, so that it can get smaller", "[store]") {
  const Kept k;
  k.fill();
  k.script(
      "DROP INDEX event_by_time; PRAGMA user_version = 10; PRAGMA journal_mode = DELETE; "
      "PRAGMA auto_vacuum = NONE; VACUUM");
  REQUIRE(k.number("PRAGMA auto_vacuum") == 0);
  const uintmax_t before = k.bytes();
  k.purge(kEvents - 10, 40);
  CHECK(k.number("PRAGMA auto_vacuum") == 2);
  CHECK(k.number("SELECT count(*) FROM event") == 10);
  CHECK(k.number("PRAGMA user_version") == newest_schema());
  CHECK(k.number("PRAGMA application_id") == kApplicationId);
  CHECK(k.bytes() < before / 2);
  CHECK(std::filesystem::exists(k.path + ".schema10.bak"));
}

TEST_CASE("events go from a database that was never rewritten, too; its file keeps the space", "[store]") {
  const Kept k;
  k.fill();
  k.script("PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM");
  const uintmax_t before = k.bytes();
  k.purge(kEvents - 10, 40);
  CHECK(k.number("SELECT count(*) FROM event") == 10);
  CHECK(k.bytes() >= before);
  CHECK_FALSE(*k.open()->would_purge({kEvents - 10, kEvents, 500}));  // else purges would never end
}
