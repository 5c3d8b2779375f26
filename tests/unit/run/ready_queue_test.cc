#include "controller/run/ready_queue.h"

#include "tests/catch.h"

using namespace muster;

namespace {

using Lane = Limits::Lane;
using Order = std::vector<size_t>;

// All that are to be looked at, in order. Places: whether there is one in any lane.
Order drained(ReadyQueue& queue, bool places = false) {
  Order seen;
  size_t from = 0;
  while (const auto next = queue.next(from, [&](Lane) { return places; })) {
    seen.push_back(*next);
    from = *next + 1;
  }
  return seen;
}

std::string awaited(const ReadyQueue& queue, size_t node) {
  const std::string* action = queue.awaited(node);
  return action ? *action : "";
}

}  // namespace

TEST_CASE("nodes are looked at in the plan's order, each once", "[run][ready]") {
  ReadyQueue queue(4);
  CHECK(drained(queue).empty());
  for (const size_t node : {3, 1, 3, 2}) queue.add(node);
  CHECK(drained(queue) == Order{1, 2, 3});
  CHECK(drained(queue).empty());
  queue.add_all();
  CHECK(drained(queue) == Order{0, 1, 2, 3});
  queue.add(1);
  CHECK_FALSE(queue.next(2, [](Lane) { return true; }));  // behind the place of the look
  CHECK(drained(queue) == Order{1});
}

TEST_CASE("who waits for an action is looked at when it succeeds, or its node changes", "[run][ready]") {
  ReadyQueue queue(4);
  queue.wait_for(0, {3, "d/x"});
  queue.wait_for(1, {3, "d/x"});
  queue.wait_for(2, {3, "d/y"});
  CHECK(awaited(queue, 2) == "d/y");
  queue.succeeded({3, "d/z"});
  queue.changed(2);
  CHECK(drained(queue).empty());
  SECTION("it succeeds") {
    queue.succeeded({3, "d/x"});
    CHECK(awaited(queue, 0).empty());
    CHECK(drained(queue) == Order{0, 1});
    queue.succeeded({3, "d/y"});
    CHECK(drained(queue) == Order{2});
  }
  SECTION("its node changes") {
    queue.changed(3);
    CHECK(drained(queue) == Order{0, 1, 2});
  }
  queue.succeeded({3, "d/x"});
  queue.changed(3);
  CHECK(drained(queue).empty());  // they wait for nothing any more
}

TEST_CASE("a node waits for the newest thing alone", "[run][ready]") {
  ReadyQueue queue(3);
  queue.wait_for(0, {1, "b/x"});
  queue.wait_for(0, {2, "c/x"});
  queue.changed(1);
  CHECK(drained(queue).empty());
  queue.wait_for_place(0, Lane::imaging);
  queue.changed(2);
  CHECK(drained(queue).empty());
  queue.wait_for_barrier(0, 5, {1, "b/y"});
  CHECK(drained(queue, true).empty());
  queue.add(0);
  CHECK(drained(queue) == Order{0});
  queue.changed(1);
  CHECK_FALSE(queue.next_barrier());  // nothing waits there
  queue.add(0);
  queue.drop(0);
  CHECK(drained(queue).empty());
}

TEST_CASE("who waits for a place is looked at while there is one, among the others in order",
          "[run][ready]") {
  ReadyQueue queue(5);
  queue.wait_for_place(1, Lane::imaging);
  queue.wait_for_place(3, Lane::imaging);
  queue.wait_for_place(2, Lane::netboot);
  queue.add(4);
  int places = 1;  // for imaging
  const auto has_place = [&](Lane lane) { return lane == Lane::imaging && places > 0; };
  CHECK(queue.next(0, has_place) == size_t{1});
  places = 0;
  CHECK(queue.next(2, has_place) == size_t{4});
  CHECK_FALSE(queue.next(0, has_place));
  places = 1;
  CHECK(queue.next(0, has_place) == size_t{3});
  CHECK_FALSE(queue.next(0, has_place));
  CHECK(drained(queue, true) == Order{2});
}

TEST_CASE("those behind a barrier wait together for its members, one after the other", "[run][ready]") {
  ReadyQueue queue(4);
  queue.wait_for_barrier(0, 7, {2, "c/x"});
  queue.wait_for_barrier(1, 7, {2, "c/x"});
  CHECK(awaited(queue, 0) == "c/x");
  CHECK_FALSE(queue.next_barrier());
  queue.succeeded({2, "c/x"});
  CHECK(drained(queue).empty());
  auto due = queue.next_barrier();
  REQUIRE(due);
  CHECK(due->barrier == 7);
  CHECK(due->member == "c/x");
  CHECK_FALSE(queue.next_barrier());
  queue.hold(7, {3, "d/x"});
  CHECK(awaited(queue, 1) == "d/x");
  queue.changed(2);
  CHECK_FALSE(queue.next_barrier());
  queue.changed(3);
  REQUIRE(queue.next_barrier());
  queue.open(7);
  CHECK(drained(queue) == Order{0, 1});
  queue.open(7);
  CHECK(drained(queue).empty());
}

TEST_CASE("what comes to a barrier last decides what it waits for", "[run][ready]") {
  ReadyQueue queue(4);
  queue.wait_for_barrier(0, 0, {2, "c/x"});
  queue.wait_for_barrier(1, 0, {3, "d/x"});
  CHECK(awaited(queue, 0) == "d/x");
  queue.changed(2);
  CHECK_FALSE(queue.next_barrier());
  queue.changed(3);
  CHECK(queue.next_barrier());
}
