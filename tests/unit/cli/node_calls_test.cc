// Many BMCs at once: what is under way, what is printed when, and how it ends.
#include "cli/node_calls.h"

#include <algorithm>
#include <atomic>
#include <deque>

#include "cli/cli_context.h"
#include "tests/catch.h"

using namespace muster;
using namespace muster::cli;

namespace {

std::vector<std::string> names(size_t count) {
  std::vector<std::string> out;
  for (size_t i = 0; i < count; ++i) out.push_back("n" + std::to_string(i));
  return out;
}

// Results come when the test lets them; each wait without one is a time span that passes.
class Scripted : public CallRunner {
 public:
  void start(size_t at, const std::string& node) override {
    started.push_back(node);
    under_way.push_back(at);
    most = std::max(most, under_way.size());
  }
  std::optional<CallResult> next(DurationMs within) override {
    waited.push_back(within);
    if (silent > 0) return --silent, std::nullopt;
    const size_t at = newest_first ? under_way.back() : under_way.front();
    under_way.erase(std::find(under_way.begin(), under_way.end(), at));
    if (fails && fails(at)) return CallResult{at, fail(Code::unavailable, "refused")};
    return CallResult{at, Json{{"power", "on"}}};
  }

  int silent = 0;
  bool newest_first = false;
  std::function<bool(size_t at)> fails = {};
  size_t most = 0;
  std::vector<std::string> started;
  std::deque<size_t> under_way;
  std::vector<DurationMs> waited;
};

struct Reported {
  std::vector<std::string> finished;
  std::vector<std::vector<std::string>> waiting;
  std::vector<size_t> not_begun;
  CallReports reports() {
    return {[this](const std::string& node, const Result<Json>&) { finished.push_back(node); },
            [this](const std::vector<std::string>& under_way, size_t later) {
              waiting.push_back(under_way);
              not_begun.push_back(later);
            }};
  }
};

}  // namespace

TEST_CASE("a line comes for each node as soon as it answers, and no more than a few are called at once",
          "[cli]") {
  Scripted runner;
  runner.newest_first = true;
  Reported said;
  const auto results = call_each(names(20), runner, said.reports());
  CHECK(results.size() == 20);
  CHECK(runner.started.size() == 20);
  CHECK(runner.most == kCallsAtOnce);
  CHECK(said.finished.front() == "n7");
  CHECK(said.waiting.empty());
}

TEST_CASE("after a few seconds without a result what is waited for is printed, then less and less often",
          "[cli]") {
  Scripted runner;
  runner.silent = 3;
  Reported said;
  (void)call_each(names(kCallsAtOnce + 2), runner, said.reports());
  REQUIRE(said.waiting.size() == 3);
  CHECK(said.waiting[0] == names(kCallsAtOnce));
  CHECK(said.not_begun[0] == 2);
  CHECK(runner.waited[0] == kQuiet);
  CHECK(kQuiet <= 5 * kSecond);
  CHECK(runner.waited[1] == 2 * kQuiet);
  CHECK(runner.waited[2] == 4 * kQuiet);
  CHECK(runner.waited[4] == kQuiet);  // behind a result
}

TEST_CASE("one node that fails holds up no other, and the results are in the order of the nodes", "[cli]") {
  Scripted runner;
  runner.newest_first = true;
  runner.fails = [](size_t at) { return at == 1; };
  Reported said;
  const auto results = call_each(names(3), runner, said.reports());
  CHECK(said.finished == std::vector<std::string>{"n2", "n1", "n0"});
  CHECK(results[0].ok());
  CHECK(results[1].error().code == Code::unavailable);
  CHECK(results[2].ok());
  CHECK(exit_for_calls(results) == kPartial);
}

TEST_CASE("the exit code of many calls: none failed, some, all for one reason, all for several", "[cli]") {
  const Result<Json> good = Json(1), away = fail(Code::unavailable, ""), no_node = fail(Code::not_found, ""),
                     refused = fail(Code::denied, "");
  CHECK(exit_for_calls({}) == kAccepted);
  CHECK(exit_for_calls({good, good}) == kAccepted);
  CHECK(exit_for_calls({good, refused}) == kPartial);
  CHECK(exit_for_calls({away}) == kFailed);
  CHECK(exit_for_calls({no_node, no_node}) == kUsage);
  CHECK(exit_for_calls({refused, refused}) == kRefused);
  CHECK(exit_for_calls({refused, no_node}) == kFailed);
}

TEST_CASE("in threads each node is called once", "[cli]") {
  std::atomic<int> calls = 0;
  Reported said;
  const auto results = call_each(
      names(50),
      [&](const std::string& node) -> Result<Json> {
        ++calls;
        return Json(node);
      },
      said.reports());
  CHECK(calls == 50);
  CHECK(said.finished.size() == 50);
  for (size_t at = 0; at < results.size(); ++at) CHECK(*results[at] == "n" + std::to_string(at));
}
