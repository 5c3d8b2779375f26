// The choice of a rollout's next batch: which nodes, how many, and why the others wait.
#include "controller/rollout/next.h"

#include "tests/catch.h"
#include "tests/unit/rollout/rollout_fixture.h"

using namespace muster;
using namespace muster::rollout;

TEST_CASE("rollout: the canary is a node with a BMC that serves nothing and is not special", "[rollout]") {
  View view = cluster(6);
  view.nodes[0].has_bmc = false;
  make_group(view, "data", 1, {1});
  view.nodes[2].special = Special::leader;
  view.nodes[3].way = Way::none;
  const Answer a = next(view, begun(1, "t1"));
  REQUIRE(a.what == Do::run);
  CHECK(a.batch.canary);
  CHECK(a.batch.nodes == Places{4});
  CHECK(a.batch.bound == Bound::canary);
  CHECK(a.batch.failure_budget == 0);
  CHECK(a.batch.prefetch.empty());
  CHECK(reason_of(a, 5) == Reason::canary);
  CHECK(reason_of(a, 3) == Reason::no_way);
}

TEST_CASE("rollout: the canary is rather idle and in place", "[rollout]") {
  View view = cluster(4);
  view.nodes[0].idle = false;
  view.nodes[1].way = Way::through_ram;
  CHECK(nodes_of(view, begun(1, "t1")) == Places{2});
  view.nodes[2].way = view.nodes[3].way = Way::through_ram;
  CHECK(nodes_of(view, begun(1, "t1")) == Places{1});
  for (size_t at : {1, 2, 3}) view.nodes[at].idle = false;
  CHECK(nodes_of(view, begun(1, "t1")) == Places{0});
}

TEST_CASE("rollout: each image has its canaries, and no image goes on without", "[rollout]") {
  View view = cluster(6);
  for (size_t at : {3, 4, 5}) view.nodes[at].image_wanted = "other";
  view.policy.canary = 2;
  CHECK(nodes_of(view, begun(1, "t1")) == Places{0, 1, 3, 4});
  CHECK(next(view, begun(1, "t1")).batch.bound == Bound::canary);
  view.policy.max_unavailable.count = 3;
  CHECK(nodes_of(view, begun(1, "t1")) == Places{0, 1, 3});
  CHECK(next(view, begun(1, "t1")).batch.bound == Bound::max_unavailable);

  Row row = proven_row();
  row.proven["new"] = 2;
  row.proven["other"] = 1;
  const Answer a = next(view, row);
  CHECK(a.batch.canary);
  CHECK(a.batch.nodes == Places{3});  // one is still needed
  CHECK(reason_of(a, 0) == Reason::canary);
}

TEST_CASE("rollout: less than one canary counts as one", "[rollout]") {
  View view = cluster(3);
  view.policy.canary = 0;
  const Answer a = next(view, begun(1, "t1"));
  CHECK(a.batch.canary);
  CHECK(a.batch.nodes == Places{0});
}

TEST_CASE("rollout: without any node that could be a canary all are left, and it is done", "[rollout]") {
  View view = cluster(3);
  for (Node& node : view.nodes) node.has_bmc = false;
  const Answer a = next(view, begun(1, "t1"));
  CHECK(a.what == Do::done);
  CHECK(a.left.size() == 3);
  for (size_t at : {0, 1, 2}) CHECK(reason_of(a, at) == Reason::no_canary);
}

TEST_CASE("rollout: an image that nothing can prove is left, and the others go", "[rollout]") {
  View view = cluster(4);
  view.nodes[3].image_wanted = "other";
  view.nodes[3].has_bmc = false;
  Answer a = next(view, proven_row());
  CHECK(a.batch.nodes == Places{0, 1, 2});
  CHECK(reason_of(a, 3) == Reason::no_canary);
  for (size_t at : {0, 1, 2}) view.nodes[at].image_now = "new";
  Row row = proven_row();
  row.done["n00"] = 1;
  a = next(view, row);
  CHECK(a.what == Do::done);
  CHECK(reason_of(a, 3) == Reason::no_canary);
}

TEST_CASE("rollout: an image is waited with while all that could be its canary are away", "[rollout]") {
  View view = cluster(4);
  for (size_t at : {1, 2, 3}) view.nodes[at].has_bmc = false;
  view.nodes[0].online = false;
  Answer a = next(view, begun(1, "t1"));
  CHECK(a.what == Do::wait);
  CHECK(a.wait == WaitFor::nodes);
  CHECK(reason_of(a, 1) == Reason::canary);
  // One that was proven already is not unproven by it.
  CHECK(nodes_of(view, proven_row()) == Places{1, 2, 3});
}

TEST_CASE("rollout: a canary that was given back is waited for", "[rollout]") {
  View view = cluster(3);
  for (size_t at : {1, 2}) view.nodes[at].has_bmc = false;
  Row row = begun(1, "t1");
  row.postponed["n00"] = {"jobs", 5, 1, 1, false};
  const Answer a = next(view, row);
  CHECK(a.what == Do::wait);
  CHECK(a.wait == WaitFor::next_window);
  CHECK(reason_of(a, 1) == Reason::canary);
  Row one_of_two = row;
  one_of_two.proven["new"] = 1;
  view.policy.canary = 2;
  CHECK(next(view, one_of_two).wait == WaitFor::next_window);
  view.night = 2;
  CHECK(nodes_of(view, row) == Places{0});
}

TEST_CASE("rollout: who brought the image to all possible canaries by hand has proven it", "[rollout]") {
  View view = cluster(3);
  view.nodes[0].image_now = "new";
  for (size_t at : {1, 2}) view.nodes[at].has_bmc = false;
  CHECK_FALSE(next(view, begun(1, "t1")).batch.canary);
  CHECK(nodes_of(view, begun(1, "t1")) == Places{1, 2});
  view.nodes[0].state = NodeState::quarantined;
  CHECK(reason_of(next(view, begun(1, "t1")), 1) == Reason::no_canary);
  // Nor has one that failed with it in this rollout.
  view.nodes[0].state = NodeState::accepted;
  Row failed = begun(1, "t1");
  failed.failed["n00"] = {"it fell silent", 3, false, false};
  CHECK(reason_of(next(view, failed), 1) == Reason::no_canary);
  // As long as there is one to try, it is tried.
  view = cluster(3);
  view.nodes[0].image_now = "new";
  CHECK(next(view, begun(1, "t1")).batch.canary);
}

TEST_CASE("rollout: it is not over as long as nodes may only seem to be away", "[rollout]") {
  for (const auto& seems : std::vector<std::function<void(Node&)>>{
           [](Node& node) { node.online = false; }, [](Node& node) { node.on_trial = true; },
           [](Node& node) { node.maintenance = true; }}) {
    View view = cluster(2);
    view.nodes[0].image_now = "new";
    seems(view.nodes[1]);
    view.unsure = true;
    Answer a = next(view, proven_row());
    CHECK(a.what == Do::wait);
    CHECK(a.wait == WaitFor::nodes);
    view.unsure = false;
    a = next(view, proven_row());
    CHECK(a.what == Do::done);
  }
  View view = cluster(2);
  view.unsure = true;
  CHECK(next(view, proven_row()).what == Do::run);  // those that report are taken
  view.nodes[0].image_now = view.nodes[1].image_now = "new";
  CHECK(next(view, proven_row()).what == Do::done);
  view.nodes[1].image_now = "old";
  view.nodes[1].state = NodeState::quarantined;  // by its record
  CHECK(next(view, proven_row()).what == Do::done);
}

TEST_CASE("rollout: what is away for other reasons counts against max_unavailable", "[rollout]") {
  View view = cluster(12, 5);
  view.nodes[0].online = false;
  view.nodes[1].state = NodeState::quarantined;
  view.nodes[2].maintenance = true;
  Answer a = next(view, proven_row());
  CHECK(a.batch.nodes == Places{3, 4});
  CHECK(a.batch.bound == Bound::max_unavailable);
  CHECK(reason_of(a, 0) == Reason::silent);
  CHECK(reason_of(a, 1) == Reason::quarantined);
  CHECK(reason_of(a, 2) == Reason::maintenance);
  CHECK(reason_of(a, 5) == Reason::unavailable);

  view.nodes[3].on_trial = true;
  view.nodes[4].image_now = "new";  // it needs nothing, and is away all the same
  view.nodes[4].state = NodeState::drained;
  a = next(view, proven_row());
  CHECK(a.what == Do::wait);
  CHECK(a.wait == WaitFor::nodes);
  CHECK(reason_of(a, 3) == Reason::on_trial);
  CHECK(reason_of(a, 4) == Reason::none);
}

TEST_CASE("rollout: each state in which a node is away has its reason", "[rollout]") {
  View view = cluster(4);
  const auto reason = [&](NodeState state, HeldBy held) {
    view.nodes[0].state = state;
    view.nodes[0].held_by = held;
    return reason_of(next(view, proven_row()), 0);
  };
  CHECK(reason(NodeState::quarantined, HeldBy::an_operator) == Reason::held);
  CHECK(reason(NodeState::quarantined, HeldBy::run) == Reason::quarantined);
  CHECK(reason(NodeState::draining, HeldBy::nobody) == Reason::maintenance);
  CHECK(reason(NodeState::installing, HeldBy::nobody) == Reason::installing);
  CHECK(reason(NodeState::discovered, HeldBy::nobody) == Reason::not_installed);
  CHECK(reason(NodeState::degraded, HeldBy::nobody) == Reason::none);
  view.nodes[0].image_now = "";
  CHECK(reason(NodeState::accepted, HeldBy::nobody) == Reason::unknown_image);
}

TEST_CASE("rollout: a percentage is rounded down, and is at least one node", "[rollout]") {
  View view = cluster(25);
  view.policy.max_unavailable.percent = 10;
  CHECK(nodes_of(view, proven_row()).size() == 2);
  view.policy.max_unavailable.percent = 1;
  CHECK(nodes_of(view, proven_row()).size() == 1);
  view.policy.max_unavailable.percent = 100;
  CHECK(nodes_of(view, proven_row()).size() == 25);
}

TEST_CASE("rollout: nodes of other roles are not touched and not counted", "[rollout]") {
  View view = cluster(6, 2);
  for (size_t at : {0, 1, 2}) view.nodes[at].role = "storage", view.nodes[at].online = false;
  view.policy.max_unavailable.percent = 50;  // of three
  const Answer a = next(view, proven_row());
  CHECK(a.batch.nodes == Places{3});
  CHECK(reason_of(a, 0) == Reason::none);
}

TEST_CASE("rollout: a group misses no more members than it can, for whatever reason", "[rollout]") {
  View view = cluster(8);
  make_group(view, "data", 2, {0, 1, 2, 3});
  Answer a = next(view, proven_row());
  CHECK(a.batch.nodes == Places{0, 1, 4, 5, 6, 7});
  CHECK(a.batch.bound == Bound::section);
  CHECK(a.batch.bound_group == 0);
  CHECK(reason_of(a, 2) == Reason::section);

  view.nodes[3].online = false;
  CHECK(nodes_of(view, proven_row()) == Places{0, 4, 5, 6, 7});
  view.nodes[3].role = "storage";  // not the rollout's, and away all the same
  CHECK(nodes_of(view, proven_row()) == Places{0, 4, 5, 6, 7});
  view.nodes[2].maintenance = true;
  a = next(view, proven_row());
  CHECK(a.batch.nodes == Places{4, 5, 6, 7});
  CHECK(reason_of(a, 0) == Reason::section);
}

TEST_CASE("rollout: a node of two groups counts in both", "[rollout]") {
  View view = cluster(6);
  make_group(view, "data", 1, {0, 1});
  make_group(view, "quorum", 1, {0, 2});
  CHECK(nodes_of(view, proven_row()) == Places{0, 3, 4, 5});
  view.nodes[0].image_now = "new";
  CHECK(nodes_of(view, proven_row()) == Places{1, 2, 3, 4, 5});
  view.nodes[0].online = false;
  CHECK(nodes_of(view, proven_row()) == Places{3, 4, 5});
}

TEST_CASE("rollout: a group that is not healed gives no member, and the others go on", "[rollout]") {
  View view = cluster(4);
  make_group(view, "data", 2, {0, 1});
  view.groups[0].healed = false;
  Answer a = next(view, proven_row());
  CHECK(a.batch.nodes == Places{2, 3});
  CHECK(a.batch.bound == Bound::healing);
  CHECK(reason_of(a, 0) == Reason::healing);
  for (size_t at : {2, 3}) view.nodes[at].image_now = "new";
  a = next(view, proven_row());
  CHECK(a.what == Do::wait);
  CHECK(a.wait == WaitFor::healing);
}

TEST_CASE("rollout: what a group stops without is left, and the others go on", "[rollout]") {
  View view = cluster(3);
  make_group(view, "home", 0, {0});
  make_group(view, "data", 5, {0, 1});
  CHECK(nodes_of(view, proven_row()) == Places{1, 2});
  for (size_t at : {1, 2}) view.nodes[at].image_now = "new";
  const Answer a = next(view, proven_row());
  CHECK(a.what == Do::done);
  REQUIRE(a.left.size() == 1);
  CHECK(a.left[0].reason == Reason::needed);
  CHECK(a.left[0].group == 0);
}

TEST_CASE("rollout: special nodes go alone, behind all others, the scheduler's at the end", "[rollout]") {
  View view = cluster(5);
  view.nodes[0].special = Special::scheduler;
  view.nodes[1].special = Special::single_server;
  view.nodes[2].special = Special::leader;
  Answer a = next(view, proven_row());
  CHECK(a.batch.nodes == Places{3, 4});
  CHECK(reason_of(a, 0) == Reason::last);
  for (size_t at : {3, 4}) view.nodes[at].image_now = "new";
  a = next(view, proven_row());
  CHECK(a.batch.nodes == Places{2});
  CHECK(a.batch.bound == Bound::alone);
  CHECK(reason_of(a, 1) == Reason::last);
  view.nodes[2].image_now = "new";
  CHECK(nodes_of(view, proven_row()) == Places{1});
  view.nodes[1].image_now = "new";
  CHECK(nodes_of(view, proven_row()) == Places{0});
}

TEST_CASE("rollout: a special node waits for those that have their turn in this night only", "[rollout]") {
  View view = cluster(4);
  view.nodes[0].special = Special::scheduler;
  make_group(view, "data", 1, {1});
  view.groups[0].healed = false;
  Row row = proven_row();
  row.failed["n02"] = {"it came back", 3, false, true};
  row.postponed["n03"] = {"jobs", 3, 1, 1, false};
  Answer a = next(view, row);
  CHECK(a.wait == WaitFor::healing);
  CHECK(reason_of(a, 0) == Reason::last);
  view.nodes[1].online = false;
  CHECK(nodes_of(view, row) == Places{0});
}

TEST_CASE("rollout: a special node that waits for its canary keeps its place before the next one",
          "[rollout]") {
  View view = cluster(4);
  view.nodes[0].special = Special::scheduler;
  view.nodes[1].special = Special::leader;
  view.nodes[1].image_wanted = view.nodes[2].image_wanted = "other";
  view.nodes[2].online = false;  // the only one that could be the canary
  view.nodes[3].image_now = "new";
  const Answer a = next(view, proven_row());
  CHECK(a.wait == WaitFor::nodes);
  CHECK(reason_of(a, 0) == Reason::last);
  CHECK(reason_of(a, 1) == Reason::canary);
  view.nodes[2].has_bmc = false;  // nor can that one be
  CHECK(nodes_of(view, proven_row()) == Places{0});
}

TEST_CASE("rollout: idle nodes go first, and not with busy ones", "[rollout]") {
  View view = cluster(5);
  for (size_t at : {0, 1, 3}) view.nodes[at].idle = false;
  Answer a = next(view, proven_row());
  CHECK(a.batch.nodes == Places{2, 4});
  CHECK(a.batch.bound == Bound::idle);
  CHECK(reason_of(a, 0) == Reason::busy);
  CHECK(a.batch.prefetch == Places{0, 1, 3});
  for (size_t at : {2, 4}) view.nodes[at].image_now = "new";
  a = next(view, proven_row());
  CHECK(a.batch.nodes == Places{0, 1, 3});
  CHECK(a.batch.bound == Bound::all);
}

TEST_CASE("rollout: of both idle and busy nodes those go first that have waited longest", "[rollout]") {
  View view = cluster(4, 2);
  view.nodes[0].turn = 3;
  view.nodes[2].turn = 2;
  CHECK(nodes_of(view, proven_row()) == Places{1, 3});
  view.nodes[1].turn = 4;
  CHECK(nodes_of(view, proven_row()) == Places{2, 3});
  for (Node& node : view.nodes) node.idle = false;
  CHECK(nodes_of(view, proven_row()) == Places{2, 3});
}

TEST_CASE("rollout: busy nodes go before idle ones that got an image while they waited", "[rollout]") {
  View view = cluster(4, 2);
  view.nodes[3].idle = false;
  view.nodes[3].accepted_in = view.nodes[3].turn = 1;
  for (size_t at : {0, 1, 2}) view.nodes[at].accepted_in = view.nodes[at].turn = 2;
  Answer a = next(view, proven_row());
  CHECK(a.batch.nodes == Places{3});
  CHECK(a.batch.bound == Bound::idle);
  CHECK(reason_of(a, 0) == Reason::turn);
  view.nodes[3].turn = 2;  // it was given back meanwhile
  a = next(view, proven_row());
  CHECK(a.batch.nodes == Places{0, 1});
  CHECK(reason_of(a, 3) == Reason::busy);
  // An idle node that was given back is not behind a busy one for that.
  view.nodes[3].turn = view.nodes[3].accepted_in = 2;
  view.nodes[0].turn = 7;
  for (size_t at : {1, 2}) view.nodes[at].image_now = "new";
  CHECK(nodes_of(view, proven_row()) == Places{0});
}

TEST_CASE("rollout: the canary is rather one that has waited longest", "[rollout]") {
  View view = cluster(4);
  for (Node& node : view.nodes) node.idle = false;
  view.nodes[3].way = Way::through_ram;
  const Row row = begun(1, "t1");
  CHECK(nodes_of(view, row) == Places{0});
  view.nodes[0].turn = 2;
  CHECK(nodes_of(view, row) == Places{1});
  view.nodes[1].turn = 2;
  view.nodes[2].turn = 1;
  CHECK(nodes_of(view, row) == Places{2});
  view.nodes[1].idle = true;
  CHECK(nodes_of(view, row) == Places{1});
}

TEST_CASE("rollout: a node that failed before is no canary, and goes after the others", "[rollout]") {
  View view = cluster(4);
  view.nodes[0].failed_before = true;
  CHECK(nodes_of(view, begun(1, "t1")) == Places{1});
  Answer a = next(view, proven_row());
  CHECK(a.batch.nodes == Places{1, 2, 3});
  CHECK(reason_of(a, 0) == Reason::last);
  for (size_t at : {1, 2, 3}) view.nodes[at].image_now = "new";
  CHECK(nodes_of(view, proven_row()) == Places{0});
}

TEST_CASE("rollout: where all that could be a canary failed before, an operator names one", "[rollout]") {
  View view = cluster(3);
  for (size_t at : {0, 1}) view.nodes[at].failed_before = true;
  view.nodes[2].has_bmc = false;
  CHECK(next(view, begun(1, "t1")).what == Do::done);
  CHECK(reason_of(next(view, begun(1, "t1")), 2) == Reason::no_canary);
  view.nodes[1].named_canary = true;
  CHECK(nodes_of(view, begun(1, "t1")) == Places{1});
}

TEST_CASE("rollout: a canary that an operator named goes first", "[rollout]") {
  View view = cluster(4);
  view.nodes[2].named_canary = true;
  CHECK(nodes_of(view, begun(1, "t1")) == Places{2});
  view.nodes[2].idle = false;
  view.nodes[2].way = Way::through_ram;
  CHECK(nodes_of(view, begun(1, "t1")) == Places{2});
  view.nodes[2].online = false;
  CHECK(nodes_of(view, begun(1, "t1")) == Places{0});
}

TEST_CASE("rollout: a busy canary that was delayed is followed by nodes of other images", "[rollout]") {
  View view = cluster(6);
  for (size_t at : {0, 1, 2}) view.nodes[at].image_wanted = "other", view.nodes[at].idle = false;
  Row row = proven_row();
  CHECK(nodes_of(view, row) == Places{0});
  row.postponed["n00"] = {"jobs", 3, 1, 1, false};
  CHECK(nodes_of(view, row) == Places{3, 4, 5});
  for (size_t at : {3, 4, 5}) view.nodes[at].image_now = "new";
  CHECK(nodes_of(view, row) == Places{1});
}
