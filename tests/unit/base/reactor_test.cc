#include "sys/reactor.h"

#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/catch.h"

namespace muster {

TEST_CASE("the real reactor runs posts in order, timers by due time, and never a cancelled one") {
  auto reactor = make_reactor(2);
  std::vector<std::string> seen;
  bool inside = false;
  reactor->post([&] {
    reactor->post([&] { seen.push_back(inside ? "nested" : "posted"); });
    inside = true;
    reactor->after(20, [&] {
      seen.push_back("late");
      reactor->stop();
    });
    reactor->after(1, [&] { seen.push_back("early"); });
    auto cancelled = reactor->after(5, [&] { seen.push_back("cancelled"); });
    reactor->cancel(cancelled);
    reactor->cancel(cancelled);
    inside = false;
  });
  reactor->run();
  REQUIRE(seen == std::vector<std::string>{"posted", "early", "late"});
}

TEST_CASE("a timer cancelled by another that fired in the same turn does not run") {
  auto reactor = make_reactor(1);
  bool second_ran = false;
  Reactor::TimerId second = 0;
  reactor->post([&] {
    reactor->after(0, [&] { reactor->cancel(second); });
    second = reactor->after(0, [&] { second_ran = true; });
    reactor->after(5, [&] { reactor->stop(); });
  });
  reactor->run();
  REQUIRE_FALSE(second_ran);
}

TEST_CASE("offloaded work runs elsewhere and reports on the reactor's thread") {
  auto reactor = make_reactor(2);
  std::thread::id worker, finisher;
  reactor->offload([&] { worker = std::this_thread::get_id(); },
                   [&] {
                     finisher = std::this_thread::get_id();
                     reactor->stop();
                   });
  reactor->run();
  REQUIRE(finisher == std::this_thread::get_id());
  REQUIRE(worker != finisher);
}

TEST_CASE("what throws in a task, a timer or a worker ends only itself") {
  auto reactor = make_reactor(1);
  std::vector<std::string> seen;
  reactor->post([&] {
    seen.push_back("post");
    throw std::runtime_error("meant to be");
  });
  reactor->after(0, [&] {
    seen.push_back("timer");
    reactor->offload([&] { throw std::runtime_error("meant to be"); },
                     [&] {
                       seen.push_back("done");
                       reactor->stop();
                     });
    throw std::runtime_error("meant to be");
  });
  reactor->run();
  REQUIRE(seen == std::vector<std::string>{"post", "timer", "done"});
}

}  // namespace muster
