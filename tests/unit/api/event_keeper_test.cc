// How long the live log keeps events.
#include "controller/link/event_keeper.h"

#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fakes/mem_store.h"

using namespace muster;

namespace {

constexpr DurationMs kLook = 11 * kMinute;  // the keeper looks at least once in it

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
  kept.keep = 2 * kDay;
  kept.add(1200, 10 * kDay);
  kept.add(3, 4 * kDay);
  for (const int day : {2, 1, 0}) kept.add(1, day * kDay);
  kept.keeper.begin();
  CHECK(kept.left() == 1206);
  kept.reactor.advance(kMinute + 500);
  const size_t after_one = kept.left();
  CHECK(after_one < 1206);
  CHECK(after_one > 6);
  kept.reactor.advance(kMinute);
  CHECK(kept.left() == 3);
}

TEST_CASE("days without events make no event old", "[api]") {
  Log kept;
  kept.keep = 2 * kDay;
  for (const int day : {40, 20, 1}) kept.add(1, day * kDay);
  kept.keeper.begin();
  kept.reactor.advance(30 * kDay);
  CHECK(kept.left() == 3);
  kept.add(1, 0);
  kept.reactor.advance(kLook);
  CHECK(kept.left() == 3);
}

TEST_CASE("a clock that is years ahead deletes no event that is not old, nor does the next start", "[api]") {
  constexpr DurationMs kAhead = 14 * 365 * kDay;
  Log kept;
  for (int day = 100; day >= 0; --day) kept.add(1, day * kDay);
  kept.keeper.begin();
  kept.reactor.advance(kLook);
  CHECK(kept.left() == 91);  // of 90 days and the present one
  kept.reactor.set_clock(kAhead);
  kept.reactor.advance(kLook);
  CHECK(kept.left() == 91);
  kept.add(5, 0);
  kept.reactor.advance(kLook);
  CHECK(kept.left() == 90 + 5);  // the oldest was of more than 90 days ago
  EventKeeper restarted{kept.reactor, kept.store, [&kept] { return kept.keep; }};
  restarted.begin();
  kept.reactor.advance(kLook);
  CHECK(kept.left() == 90 + 5);
  kept.reactor.set_clock(-kAhead);
  kept.add(1, 0);
  kept.reactor.advance(kLook);
  CHECK(kept.left() == 90 + 5 + 1);
}

TEST_CASE("a shorter time in a new spec counts without a restart", "[api]") {
  Log kept;
  kept.add(5, 10 * kDay);
  for (const int day : {3, 2, 1}) kept.add(1, day * kDay);
  kept.keeper.begin();
  kept.reactor.advance(kLook);
  CHECK(kept.left() == 8);
  kept.keep = 2 * kDay;
  kept.reactor.advance(kLook);
  CHECK(kept.left() == 3);
}

TEST_CASE("a purge that fails is retried", "[api]") {
  Log kept;
  kept.keep = kDay;
  kept.add(5, 91 * kDay);
  for (const int day : {1, 0}) kept.add(1, day * kDay);
  kept.store.fail_next(1, fail(Code::unavailable, "disk full"));
  kept.keeper.begin();
  kept.reactor.advance(2 * kMinute);
  CHECK(kept.left() == 7);
  kept.reactor.advance(60 * kMinute);
  CHECK(kept.left() == 2);
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
