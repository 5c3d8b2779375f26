// When a rollout stops, waits or is done, and what it does with nodes that it tried already.
#include "controller/rollout/next.h"

#include <set>

#include "tests/catch.h"
#include "tests/unit/rollout/rollout_fixture.h"

using namespace muster;
using namespace muster::rollout;

TEST_CASE("rollout: a node that failed is not tried again, and the budget counts it", "[rollout]") {
  View view = cluster(4);
  Row row = proven_row();
  row.failed["n00"] = {"it came back", 3, false, true};
  Answer a = next(view, row);
  CHECK(a.batch.nodes == Places{1, 2, 3});
  CHECK(a.batch.failure_budget == 0);
  CHECK(reason_of(a, 0) == Reason::failed);
  view.night = 9;
  CHECK(nodes_of(view, row) == Places{1, 2, 3});
  row.failed["gone"] = {"its node left the spec", 4, false, false};
  a = next(view, row);
  CHECK(a.what == Do::stop);
  CHECK(a.stop == StopReason::budget);
  view.policy.failure_budget = 2;
  CHECK(next(view, row).what == Do::run);
  view.policy.failure_budget = -1;
  CHECK(next(view, row).batch.failure_budget == -1);
}

TEST_CASE("rollout: one failed canary stops it, whatever the budget", "[rollout]") {
  View view = cluster(4);
  view.policy.failure_budget = 100;
  Row row = begun(1, "t1");
  row = with_batch(row, view, next(view, row));
  const Row failed = after_run(row, Outcome::returned, 7);
  CHECK(next(view, failed).stop == StopReason::canary_failed);
  CHECK(reason_of(next(view, failed), 1) == Reason::canary_failed);
  const Row silent = after_run(row, Outcome::quarantined, 7);
  CHECK(next(view, silent).stop == StopReason::canary_failed);
  // No failures of the image.
  CHECK(next(view, after_run(row, Outcome::held, 7)).what == Do::run);
  CHECK(next(view, after_run(row, Outcome::jobs, 7)).batch.nodes == Places{1});
}

TEST_CASE("rollout: a failed canary holds its image only, and does not count against the budget",
          "[rollout]") {
  View view = cluster(6, 2);
  view.policy.failure_budget = 0;
  for (size_t at : {3, 4, 5}) view.nodes[at].image_wanted = "other";
  Row row = begun(1, "t1");
  row = with_batch(row, view, next(view, row));
  REQUIRE(row.batch->images.size() == 2);
  RunEnd end{7, 1, false, {{"n00", {Outcome::returned, "panic"}}, {"n03", {Outcome::accepted, ""}}}};
  row = judged(with_run(row, 7).value(), end).value();
  view.nodes[3].image_now = "other";
  Answer a = next(view, row);
  CHECK(a.batch.nodes == Places{4, 5});
  CHECK(a.batch.failure_budget == 0);
  CHECK(reason_of(a, 1) == Reason::canary_failed);
  // Also while those that go on wait for another window.
  row.postponed["n04"] = row.postponed["n05"] = {"jobs", 8, 1, 1, false};
  CHECK(next(view, row).wait == WaitFor::next_window);
  for (size_t at : {4, 5}) view.nodes[at].image_now = "other";
  a = next(view, row);
  CHECK(a.stop == StopReason::canary_failed);
  CHECK(a.left.size() == 3);
  // Who brings the image to the others by hand ends that; the canary itself still needs it.
  for (size_t at : {1, 2}) view.nodes[at].image_now = "new";
  CHECK(next(view, row).stop == StopReason::canary_failed);
  view.nodes[0].skipped = true;
  CHECK(next(view, row).what == Do::done);
}

TEST_CASE("rollout: nothing begins for another spec than the approved one", "[rollout]") {
  View view = cluster(3);
  view.target = "t2";
  const Answer a = next(view, proven_row());
  CHECK(a.what == Do::stop);
  CHECK(a.stop == StopReason::target_changed);
}

TEST_CASE("rollout: a batch under way is waited for before anything else", "[rollout]") {
  View view = cluster(3);
  Row row = begun(1, "t1");
  row = with_batch(row, view, next(view, row));
  view.target = "t2";
  view.nodes[0].online = false;
  const Answer a = next(view, row);
  CHECK(a.what == Do::wait);
  CHECK(a.wait == WaitFor::run);
  CHECK(reason_of(a, 0) == Reason::none);
  CHECK(reason_of(a, 1) != Reason::none);
}

TEST_CASE("rollout: the nodes of the batch under way count as away, whatever they do just now", "[rollout]") {
  View view = cluster(6, 3);
  make_group(view, "data", 1, {0, 5});
  Row row = proven_row();
  row = with_batch(row, view, next(view, row));
  REQUIRE(row.batch->images.size() == 3);
  view.policy.max_unavailable.count = 5;
  Answer a = next(view, row);
  CHECK(a.left.size() == 3);
  CHECK(reason_of(a, 3) == Reason::held_back);
  CHECK(reason_of(a, 4) == Reason::held_back);
  CHECK(reason_of(a, 5) == Reason::unavailable);
  view.policy.max_unavailable.count = 6;
  CHECK(reason_of(next(view, row), 5) == Reason::section);
  view.nodes[1].online = false;
  CHECK(reason_of(next(view, row), 5) == Reason::section);
  CHECK(next(view, row).left.size() == 3);
}

TEST_CASE("rollout: behind the canary that is under way the others wait for it", "[rollout]") {
  View view = cluster(3);
  Row row = begun(1, "t1");
  row = with_batch(row, view, next(view, row));
  for (const bool online : {true, false}) {
    view.nodes[0].online = online;
    const Answer a = next(view, row);
    CHECK(reason_of(a, 1) == Reason::canary);
    CHECK(reason_of(a, 2) == Reason::canary);
  }
  for (size_t at : {1, 2}) view.nodes[at].has_bmc = false;
  CHECK(reason_of(next(view, row), 1) == Reason::canary);
  // One of two is through already.
  view.policy.canary = 2;
  row.proven["new"] = 1;
  CHECK(reason_of(next(view, row), 1) == Reason::canary);
}

TEST_CASE("rollout: what holds a batch back has its name, and is no reason to go on", "[rollout]") {
  View view = cluster(3);
  Row row = proven_row();
  view.window_open = false;
  Answer a = next(view, row);
  CHECK(a.wait == WaitFor::window);
  CHECK(reason_of(a, 0) == Reason::held_back);
  CHECK(a.batch.nodes.empty());
  view.active_run = 77;
  CHECK(next(view, row).wait == WaitFor::other_run);
  row.paused = true;
  CHECK(next(view, row).wait == WaitFor::resume);
  for (Node& node : view.nodes) node.image_now = "new";
  CHECK(next(view, row).what == Do::done);
}

TEST_CASE("rollout: a node that was given back is tried on a later night", "[rollout]") {
  View view = cluster(2);
  Row row = proven_row();
  row.postponed["n00"] = {"jobs", 3, 1, 1, false};
  row.postponed["n01"] = {"cancelled", 3, 1, 1, true};
  Answer a = next(view, row);
  CHECK(a.what == Do::wait);
  CHECK(a.wait == WaitFor::next_window);
  CHECK(reason_of(a, 0) == Reason::jobs);
  CHECK(reason_of(a, 1) == Reason::cancelled);
  view.night = 2;
  CHECK(nodes_of(view, row) == Places{0, 1});
}

TEST_CASE("rollout: it is done when all that is left has a reason", "[rollout]") {
  View view = cluster(6);
  view.nodes[0].image_now = "new";
  view.nodes[1].way = Way::none;
  view.nodes[2].online = false;
  view.nodes[3].state = NodeState::quarantined;
  view.nodes[4].image_wanted = "";
  Row row = proven_row();
  row.failed["n05"] = {"it came back", 3, false, true};
  const Answer a = next(view, row);
  CHECK(a.what == Do::done);
  CHECK(a.left.size() == 4);
  CHECK(reason_of(a, 1) == Reason::no_way);
  CHECK(reason_of(a, 4) == Reason::none);
  row.stage = Stage::done;
  view.nodes[2].online = true;
  CHECK(next(view, row).what == Do::done);  // until an operator starts it again
  CHECK(nodes_of(view, started_again(row, "t1").value()) == Places{2});
}

TEST_CASE("rollout: a skipped node is in service, is no canary, and does not keep a rollout from being done",
          "[rollout]") {
  View view = cluster(4, 2);
  view.nodes[0].skipped = true;
  CHECK(nodes_of(view, begun(1, "t1")) == Places{1});
  CHECK(nodes_of(view, proven_row()) == Places{1, 2});  // it does not count as away
  CHECK(reason_of(next(view, proven_row()), 0) == Reason::skipped);
  for (size_t at : {1, 2, 3}) view.nodes[at].image_now = "new";
  CHECK(next(view, proven_row()).what == Do::done);
  view.nodes[0].skipped = false;
  CHECK(nodes_of(view, proven_row()) == Places{0});
}

TEST_CASE("rollout: stopped stays stopped", "[rollout]") {
  const View view = cluster(3);
  Row row = proven_row();
  row.stage = Stage::stopped;
  row.stop = StopReason::no_canary;
  CHECK(next(view, row).what == Do::stop);
  CHECK(next(view, row).stop == StopReason::no_canary);
}

TEST_CASE("rollout: prefetched is what goes next and in place", "[rollout]") {
  View view = cluster(7, 3);
  view.nodes[4].way = Way::through_ram;
  view.nodes[6].special = Special::scheduler;
  Row row = proven_row();
  Answer a = next(view, row);
  CHECK(a.batch.nodes == Places{0, 1, 2});
  CHECK(a.batch.prefetch == Places{3, 5});
  for (size_t at : {0, 1, 2}) view.nodes[at].image_now = "new";
  a = next(view, row);
  CHECK(a.batch.nodes == Places{3, 4, 5});
  CHECK(a.batch.prefetch == Places{6});
}

TEST_CASE("rollout: every answer, reason and bound has a word of its own", "[rollout]") {
  std::set<std::string_view> words;
  for (int i = 0; i <= static_cast<int>(Reason::held_back); ++i)
    words.insert(to_string(static_cast<Reason>(i)));
  CHECK(words.size() == static_cast<size_t>(Reason::held_back) + 1);
  CHECK(to_string(Reason::no_canary) == "no-canary");
  CHECK(to_string(Reason::held_back) == "held-back");
  CHECK(to_string(Bound::alone) == "alone");
  CHECK(to_string(WaitFor::nodes) == "nodes");
}
