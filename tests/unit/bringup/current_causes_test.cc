// Causes over time: what an operator has switched is away for a while, and what was wrong before stays so.
#include "controller/bringup/current_causes.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controller/options/options.h"
#include "tests/fakes/temp_dir.h"
#include "tests/unit/plan/fixture.h"
#include "tests/unit/run/bench.h"

using namespace muster;

namespace {

// node01 is in service and has reported; of the other nodes nothing is known.
struct Bench : testing::RunBench {
  Bench() {
    store.write({SpecRow{1, 1, testing::kSpec, "sha256:spec", ""}}, [](Status s) { REQUIRE(s.ok()); });
    reactor.advance(100);
    live();
    report("b-1");
    executor->set_node("node01", [](NodeRow& row) { row.state = NodeState::accepted; });
    causes = std::make_unique<CurrentCauses>(
        CurrentCauses::Parts{NodesView::Parts{true, reactor, store, spec, *executor, storage, problems},
                             images, authority},
        []() -> const rollout::Record* { return nullptr; }, [] { return std::vector<Cause>(); });
  }
  void report(const std::string& boot) { hello("node01", wire::Mode::installed, boot, "sha256:x"); }
  bool has(CauseKind kind) {
    reactor.advance(kSecond);  // look() may return what it found before
    const auto& found = causes->look();
    return std::any_of(found.begin(), found.end(), [&](const Cause& cause) { return cause.kind == kind; });
  }
  bool silent() { return has(CauseKind::node_silent); }
  bool degraded() { return has(CauseKind::node_degraded); }

  TempDir dir;
  CurrentSpec spec{store};
  StorageReports storage;
  std::map<std::string, std::string> problems;
  const std::unique_ptr<RealReactor> real = make_reactor(1);
  DaemonOptions options;
  const ImageService images{*real, options};
  const Authority authority = Authority::open(dir.path("state"), {"127.0.0.1"}, 1'700'000'000'000).value();
  std::unique_ptr<CurrentCauses> causes;
};

}  // namespace

TEST_CASE("causes: a node that is switched is not silent until its boot should have ended", "[bringup]") {
  Bench b;
  CHECK_FALSE(b.silent());
  b.causes->switched("node01", true);
  SECTION("it stays away") {
    b.reactor.advance(19 * kMinute);
    CHECK_FALSE(b.silent());
    b.reactor.advance(kMinute);
    CHECK(b.silent());
  }
  SECTION("it was back, and is silent again") {
    b.reactor.advance(2 * kMinute);
    CHECK_FALSE(b.silent());
    b.report("b-2");
    CHECK_FALSE(b.silent());
    b.reactor.advance(2 * kMinute);
    CHECK(b.silent());
  }
  SECTION("the order failed") {
    b.causes->not_switched("node01");
    b.reactor.advance(2 * kMinute);
    CHECK(b.silent());
  }
  SECTION("it is switched on later: its boot begins then") {
    b.reactor.advance(15 * kMinute);
    b.causes->switched("node01", false);
    b.reactor.advance(15 * kMinute);
    CHECK_FALSE(b.silent());
    b.reactor.advance(5 * kMinute);
    CHECK(b.silent());
    b.causes->switched("node01", false);  // too late: it is not expected away any more
    CHECK(b.silent());
  }
}

TEST_CASE("causes: to switch a node that is silent, or to switch one on, hides no silence", "[bringup]") {
  Bench b;
  const bool goes_away = GENERATE(true, false);
  if (!goes_away) b.causes->switched("node01", goes_away);
  b.reactor.advance(2 * kMinute);
  CHECK(b.silent());
  b.causes->switched("node01", goes_away);
  CHECK(b.silent());
}

TEST_CASE("causes: what a node had not mounted before it was switched is not over meanwhile", "[bringup]") {
  Bench b;
  CHECK_FALSE(b.degraded());
  b.storage.update("node01", "[]");
  CHECK(b.degraded());
  b.causes->switched("node01", true);
  CHECK(b.degraded());
  b.reactor.advance(2 * kMinute);  // it is off
  CHECK(b.degraded());
  CHECK_FALSE(b.silent());
  b.report("b-2");
  CHECK(b.degraded());
  // It reports more mounts than there is room for: nothing shows that this one is still missing.
  b.storage.update("node01", R"([{"cut": true}])");
  CHECK_FALSE(b.degraded());
}
