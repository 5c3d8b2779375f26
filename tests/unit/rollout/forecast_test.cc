// The forecast of a rollout: which node in which batch, if nothing goes wrong.
#include "controller/rollout/next.h"

#include <map>

#include "tests/catch.h"
#include "tests/unit/rollout/rollout_fixture.h"

using namespace muster::rollout;

TEST_CASE("rollout forecast: canary, batches and special nodes, each node once", "[rollout]") {
  View view = cluster(12, 3);
  make_group(view, "data", 1, {0, 1, 2});
  view.groups[0].healed = false;
  view.nodes[11].special = Special::scheduler;
  view.window_open = false;
  view.active_run = 5;
  const Forecast f = forecast(view, begun(1, "t1"));
  std::map<size_t, int> turns;
  for (const Batch& batch : f.batches) {
    CHECK(batch.nodes.size() <= 3);
    for (const size_t at : batch.nodes) ++turns[at];
  }
  CHECK(turns.size() == 12);
  for (const auto& [at, times] : turns) CHECK(times == 1);
  CHECK(f.batches.front().canary);
  CHECK(f.batches.front().nodes == Places{3});
  CHECK(f.batches.back().nodes == Places{11});
  CHECK(f.end.what == Do::done);
  CHECK(f.end.left.empty());
}

TEST_CASE("rollout forecast: what stands in its way is said", "[rollout]") {
  View view = cluster(3, 1);
  view.nodes[2].online = false;
  const Forecast f = forecast(view, begun(1, "t1"));
  CHECK(f.batches.empty());
  CHECK(f.end.wait == WaitFor::nodes);
}

TEST_CASE("rollout forecast: what is under way comes through", "[rollout]") {
  View view = cluster(4, 2);
  Row row = begun(1, "t1");
  row = with_run(with_batch(row, view, next(view, row)), 7).value();
  view.nodes[0].online = false;  // it boots
  view.active_run = 7;
  const Forecast f = forecast(view, row);
  REQUIRE(f.batches.size() == 2);
  CHECK_FALSE(f.batches[0].canary);
  CHECK(f.batches[0].nodes == Places{1, 2});
  CHECK(f.batches[1].nodes == Places{3});
  CHECK(f.end.what == Do::done);
}
