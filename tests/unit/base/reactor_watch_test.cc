// What holds a reactor for too long is named. CPU time is what the test says.
#include "sys/reactor.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.h"

using namespace muster;

namespace {

constexpr int64_t kMs = 1'000'000;

using Reported = std::vector<std::pair<std::string, DurationMs>>;

struct Watched {
  int64_t cpu = 7 * kMs;
  Reported reported;
  ReactorWatch watch{[this](const std::string& name, DurationMs took) { reported.emplace_back(name, took); },
                     [this] { return cpu; }};
  void takes(DurationMs ms) { cpu += ms * kMs; }
};

}  // namespace

TEST_CASE("a task that takes longer than the limit is named, and no other", "[reactor]") {
  Watched w;
  w.watch.run("timer", [&] { w.takes(kLongestTask); });
  CHECK(w.reported.empty());
  w.takes(10 * kLongestTask);  // between two tasks nothing waits
  w.watch.run("timer", [&] { w.takes(kLongestTask + 1); });
  CHECK(w.reported == Reported{{"timer", kLongestTask + 1}});
  CHECK(w.watch.longest().name == "timer");
  CHECK(w.watch.longest().ms == static_cast<double>(kLongestTask + 1));
}

TEST_CASE("a task's own name counts, for that task alone", "[reactor]") {
  Watched w;
  w.watch.run("post", [&] {
    w.watch.label("GET /v1/status");
    w.takes(150);
  });
  w.watch.run("post", [&] { w.takes(200); });
  CHECK(w.reported == Reported{{"GET /v1/status", 150}, {"post", 200}});
}

TEST_CASE("what a worker would do is not counted", "[reactor]") {
  Watched w;
  w.watch.run("post", [&] {
    w.takes(60);
    CHECK(w.watch.elsewhere([&] { return w.takes(500), 3; }) == 3);
    w.takes(30);
  });
  CHECK(w.reported.empty());
  w.watch.run("post", [&] { w.takes(101); });  // what was left out once counts again
  CHECK(w.reported.size() == 1);
}

TEST_CASE("a name is reported once in an hour", "[reactor]") {
  SteadyMs now{1000};
  Reported reported;
  const auto hook =
      once_an_hour([&] { return now; },
                   [&](const std::string& name, DurationMs took) { reported.emplace_back(name, took); });
  hook("a", 101);
  hook("a", 102);
  hook("b", 103);
  now += 59 * kMinute;
  hook("a", 104);
  now += kMinute;
  hook("a", 105);
  CHECK(reported == Reported{{"a", 101}, {"b", 103}, {"a", 105}});
}

TEST_CASE("the real reactor measures posts and timers, under their names", "[reactor]") {
  int64_t cpu = 1;
  Reported reported;
  const auto reactor = make_reactor(1, [&] { return cpu; });
  reactor->on_slow([&](const std::string& name, DurationMs took) { reported.emplace_back(name, took); });
  reactor->post([&] { cpu += 101 * kMs; });
  reactor->post([&] {
    reactor->label("PUT /v1/spec");
    cpu += 102 * kMs;
  });
  reactor->post([&] { cpu += 100 * kMs; });
  reactor->after(0, [&] {
    cpu += 103 * kMs;
    reactor->stop();
  });
  reactor->run();
  std::sort(reported.begin(), reported.end(),
            [](const auto& a, const auto& b) { return a.second < b.second; });
  CHECK(reported == Reported{{"post", 101}, {"PUT /v1/spec", 102}, {"timer", 103}});
}
