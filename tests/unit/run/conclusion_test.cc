// The end of a run while its conclusion is made elsewhere: nothing waits for it, and what happens meanwhile
// is not lost.
#include <stdexcept>
#include <utility>

#include "tests/unit/run/bench.h"

using namespace muster;

namespace {

struct Ending : testing::RunBench {
  std::vector<std::pair<RunRow, ExecutorHooks::Concluded>> asked_to_conclude;

  Ending() {
    for (const char* node : {"n1", "n2"}) add(testing::action(node, "accept", ActionKind::check));
    concludes = [this](const RunRow& run, ExecutorHooks::Concluded done) {
      asked_to_conclude.emplace_back(run, std::move(done));
    };
  }
  // All nodes came through.
  void come_through() {
    start();
    for (const char* node : {"n1", "n2"}) hello(node, wire::Mode::installed, "b");
    for (const char* node : {"n1", "n2"}) finish(node);
    reactor.advance(kSecond);
  }
  void answer(size_t which, Conclusion conclusion = {}) {
    asked_to_conclude.at(which).second(std::move(conclusion));
    reactor.advance(kSecond);
  }
};

Conclusion degraded(const std::string& node) {
  Conclusion out;
  out.nodes = {{NodeName(node), false, "slow"}};
  return out;
}

}  // namespace

TEST_CASE("a run is under way until its conclusion is made, and ended when that was requested", "[run]") {
  Ending b;
  b.come_through();
  REQUIRE(b.asked_to_conclude.size() == 1);
  CHECK(b.executor->active());
  CHECK(b.ended.empty());
  b.reactor.advance(kMinute);
  b.answer(0, degraded("n1"));
  REQUIRE(b.ended.size() == 1);
  CHECK(b.ended[0].ended == b.asked_to_conclude[0].first.ended);
  CHECK(b.store.run(1)->state == RunState::done);
  CHECK(b.row("n1").state == NodeState::degraded);
  b.answer(0);  // a second answer is none
  CHECK(b.ended.size() == 1);
}

TEST_CASE("a node that is taken out while its run is concluded is concluded about again", "[run]") {
  Ending b;
  b.come_through();
  b.executor->quarantine("n1", "smoke");
  b.answer(0, degraded("n1"));
  CHECK(b.ended.empty());
  REQUIRE(b.asked_to_conclude.size() == 2);
  CHECK(b.asked_to_conclude[1].first.state == RunState::partial);
  b.answer(1, degraded("n2"));
  REQUIRE(b.ended.size() == 1);
  CHECK(b.ended[0].state == RunState::partial);
  CHECK(b.row("n1").state == NodeState::quarantined);
  CHECK(b.row("n2").state == NodeState::degraded);
}

TEST_CASE("a run that is cancelled while it is concluded ends as cancelled", "[run]") {
  Ending b;
  b.come_through();
  b.executor->cancel("enough");
  b.reactor.advance(kSecond);
  REQUIRE(b.ended.size() == 1);
  CHECK(b.ended[0].state == RunState::cancelled);
  b.answer(0, degraded("n1"));
  CHECK(b.ended.size() == 1);
  CHECK(b.row("n1").state == NodeState::accepted);
}

TEST_CASE("a conclusion that fails leaves no run without its end", "[run]") {
  Ending b;
  b.concludes = [](const RunRow&, const ExecutorHooks::Concluded&) {
    throw std::runtime_error("meant to be");
  };
  b.come_through();
  REQUIRE(b.ended.size() == 1);
  CHECK(b.ended[0].state == RunState::done);
}

TEST_CASE("an answer that comes when its executor is gone does nothing", "[run]") {
  Ending b;
  b.come_through();
  b.executor.reset();
  b.answer(0, degraded("n1"));
  CHECK(b.ended.empty());
}
