// How long the live log keeps events.
#include "controller/link/event_keeper.h"

#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fakes/mem_store.h"

using namespace muster;

namespace {

struct Log {
  ManualReactor reactor;
  MemStore store{reactor};
  DurationMs keep = 90 * kDay;
  EventKeeper keeper{reactor, store, [this] { return keep; }};

  void add(int count, DurationMs age) {
    std::vector<Write> batch;
    for (int i = 0; i < count; ++i)
      batch.push_back(EventRow{0, reactor.now() - age, 0, "node01", "log", "{}"});
    store.write(std::move(batch), {});
    reactor.advance(100);
  }
  size_t left() { return store.events({.limit = 100000})->size(); }
};

}  // namespace

TEST_CASE("events older than the spec keeps them go, a slice at a time, and the others stay", "[api]") {
  Log kept;
  kept.add(1200, 91 * kDay);
  kept.add(3, 89 * kDay);
  kept.keeper.begin();
  CHECK(kept.left() == 1203);
  kept.reactor.advance(kMinute + 500);
  const size_t after_one = kept.left();
  CHECK(after_one < 1203);
  CHECK(after_one > 3);
  kept.reactor.advance(kMinute);
  CHECK(kept.left() == 3);
  kept.reactor.advance(2 * kDay);
  CHECK(kept.left() == 0);
}

TEST_CASE("a shorter time in a new spec counts without a restart", "[api]") {
  Log kept;
  kept.add(5, 10 * kDay);
  kept.keeper.begin();
  kept.reactor.advance(60 * kMinute);
  CHECK(kept.left() == 5);
  kept.keep = 7 * kDay;
  kept.reactor.advance(60 * kMinute);
  CHECK(kept.left() == 0);
}

TEST_CASE("a purge that fails is retried", "[api]") {
  Log kept;
  kept.add(5, 91 * kDay);
  kept.store.fail_next(1, fail(Code::unavailable, "disk full"));
  kept.keeper.begin();
  kept.reactor.advance(2 * kMinute);
  CHECK(kept.left() == 5);
  kept.reactor.advance(60 * kMinute);
  CHECK(kept.left() == 0);
}

TEST_CASE("nothing is written while nothing is old", "[api]") {
  Log kept;
  kept.add(5, 0);
  int writes = 0;
  kept.store.refuse(
      [&](const Write& row) { return ++writes > 0 && std::holds_alternative<PurgeEvents>(row); },
      fail(Code::failed, ""));
  kept.keeper.begin();
  kept.reactor.advance(kDay);
  CHECK(writes == 0);
}
