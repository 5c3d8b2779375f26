// A value that is kept for a while.
#include "sys/fresh.h"

#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"

using namespace muster;

TEST_CASE("fresh: all get one value until it is too old, by a clock that is not set") {
  ManualReactor reactor;
  Fresh<int> count{reactor, kSecond};
  const auto next = [&] { return count.get([](int before) { return before + 1; }); };
  CHECK(next() == 1);
  reactor.advance(kSecond - 1);
  CHECK(next() == 1);
  reactor.set_clock(24 * 60 * kMinute);
  CHECK(next() == 1);
  reactor.advance(1);
  CHECK(next() == 2);
  CHECK(next() == 2);
  reactor.set_clock(-48 * 60 * kMinute);
  reactor.advance(kSecond);
  CHECK(next() == 3);
}

TEST_CASE("fresh: what expired is made again, from the value before") {
  ManualReactor reactor;
  Fresh<std::string> text{reactor, kSecond};
  const auto next = [&] { return text.get([](const std::string& before) { return before + "x"; }); };
  CHECK(next() == "x");
  text.expire();
  CHECK(next() == "xx");
  CHECK(next() == "xx");
}
