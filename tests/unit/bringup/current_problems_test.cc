// What counts as a problem, and as whose.
#include "controller/bringup/current_problems.h"

#include <algorithm>
#include <set>

#include "base/utf8.h"
#include "tests/catch.h"

using namespace muster;

namespace {

NodeNow well(const NodeName& name) {
  NodeNow out;
  out.name = name;
  out.state = NodeState::accepted;
  out.image_digest = "sha256:old";
  return out;
}

std::vector<Problem> problems_of(const NodeNow& node) {
  ClusterNow now;
  now.nodes = {node};
  return current_problems(now);
}

// A rollout of image `node` whose canary gpu01 failed, and in which gpu02 went back to its old system.
rollout::Record with_canary_failed() {
  rollout::Record record;
  record.id = 3;
  record.row = rollout::begun(3, "target");
  record.images = {{"node", "sha256:new"}};
  record.before = {{"gpu01", "sha256:old"}, {"gpu02", "sha256:old"}};
  record.row->held["sha256:new"] = {"gpu01", "no link", "sha256:new", 7};
  record.row->failed["gpu01"] = {"no link", 7, true, false};
  record.row->failed["gpu02"] = {"no disk", 8, false, true};
  return record;
}

size_t count(const std::vector<Problem>& problems, CauseKind kind) {
  return static_cast<size_t>(
      std::count_if(problems.begin(), problems.end(), [kind](const Problem& p) { return p.kind == kind; }));
}

// A storage section, and what is wrong with it at a time while runs have members of these sections.
struct Copies {
  Copies() {
    now.nodes = {well("store01"), well("store02")};
    with(Json::array());
  }
  // `silent`: a node that does not report.
  void with(const Json& problems, const std::string& silent = "") {
    Json nodes = Json::array();
    for (const NodeNow& node : now.nodes)
      nodes.push_back(
          {{"node", node.name.str()}, {"state", node.name.str() == silent ? "unknown" : "mounted"}});
    reported = Json::array({{{"name", "shared"}, {"problems", problems}, {"nodes", nodes}}});
  }
  size_t problems_at(DurationMs span, const std::set<std::string>& away) {
    now.storage = reported;
    lasting = lasting_problems(now.storage, lasting, now.nodes);
    now.healing = healing_sections(now.healing, away, now.storage, SteadyMs{kDay + span});
    return count(current_problems(now), CauseKind::node_degraded);
  }
  ClusterNow now;
  Json reported;
  StorageProblems lasting;
  const Json lost = {{"node", "store01"}, {"problem", "3 chunks are undergoal"}, {"of_engine", true}};
  const Json absent = {{"node", "store02"}, {"problem", "/shared is not mounted"}};
};

}  // namespace

TEST_CASE("problems: a healthy cluster has none", "[bringup]") {
  CHECK(current_problems({}).empty());
  CHECK(problems_of(well("gpu01")).empty());
}

TEST_CASE("problems: each state of a node that needs a person is one", "[bringup]") {
  NodeNow node = well("gpu01");
  node.reason = "why";
  CauseKind kind = CauseKind::node_silent;
  SECTION("silent") { node.silent_since = 5; }
  SECTION("degraded") {
    node.state = NodeState::degraded;
    kind = CauseKind::node_degraded;
  }
  SECTION("quarantined by a run") {
    node.state = NodeState::quarantined;
    node.held_by = HeldBy::run;
    kind = CauseKind::node_failed;
  }
  SECTION("quarantined and silent: it failed") {
    node.state = NodeState::quarantined;
    node.silent_since = 5;
    kind = CauseKind::node_failed;
  }
  SECTION("back in its old system") {
    node.in_run = NodeRunState::returned;
    node.run_reason = "the new one did not boot";
    kind = CauseKind::node_failed;
  }
  SECTION("on its way back to it") {
    node.in_run = NodeRunState::running;
    node.returning = true;
    kind = CauseKind::node_failed;
  }
  SECTION("a manual task, also of a node that was never installed") {
    node.state = NodeState::unknown;
    node.by_hand = "power it on";
    kind = CauseKind::node_waits;
  }
  const auto problems = problems_of(node);
  REQUIRE(problems.size() == 1);
  CHECK(problems.front().kind == kind);
  CHECK(problems.front().node == "gpu01");
}

TEST_CASE("problems: a quarantined node is one since it was quarantined", "[bringup]") {
  NodeNow node = well("gpu01");
  node.state = NodeState::quarantined;
  node.held_by = HeldBy::run;
  node.held_since = 7;
  CHECK(problems_of(node).front().since == 7);
}

TEST_CASE("problems: what acceptance located goes with what it found, not with a way back", "[bringup]") {
  NodeNow node = well("gpu01");
  node.faulty_part = "link of gpu01, sending";
  node.state = NodeState::degraded;
  CHECK(problems_of(node).front().part == node.faulty_part);
  node.state = NodeState::quarantined;
  CHECK(problems_of(node).front().part == node.faulty_part);
  node.in_run = NodeRunState::returned;
  CHECK(problems_of(node).front().part.empty());
}

TEST_CASE("problems: a node that an operator had switched may be away for as long as its boot may take",
          "[bringup]") {
  constexpr DurationMs kLimit = 20 * kMinute;
  const SteadyMs ordered{kDay};
  const Boot from{"b-1", ordered};
  CHECK(is_expected_away(from, "b-1", ordered + kMinute, kLimit));
  CHECK_FALSE(is_expected_away(from, "b-2", ordered + kMinute, kLimit));  // it is back
  CHECK_FALSE(is_expected_away(from, "b-1", ordered + kLimit, kLimit));
  CHECK_FALSE(is_expected_away({}, "b-1", ordered, kLimit));

  NodeNow node = well("gpu01");
  node.silent_since = 5;
  node.switched = true;
  CHECK(problems_of(node).empty());
  node.state = NodeState::degraded;  // that does not end with it
  REQUIRE(problems_of(node).size() == 1);
  CHECK(problems_of(node).front().kind == CauseKind::node_degraded);
  node.switched = false;
  CHECK(problems_of(node).front().kind == CauseKind::node_silent);

  Copies copies;  // nor are its file systems missed
  copies.now.nodes[1].switched = true;
  copies.with(Json::array({copies.absent}));
  CHECK(copies.problems_at(0, {}) == 0);
  copies.now.nodes[1].switched = false;
  CHECK(copies.problems_at(kMinute, {}) == 1);
}

TEST_CASE("problems: what operators do is none", "[bringup]") {
  NodeNow node = well("gpu01");
  node.silent_since = 5;
  SECTION("quarantined by an operator") {
    node.state = NodeState::quarantined;
    node.held_by = HeldBy::an_operator;
  }
  SECTION("drained") { node.state = NodeState::drained; }
  SECTION("never installed") { node.state = NodeState::discovered; }
  SECTION("a run works on it, which says why it waits") { node.at_work = true; }
  CHECK(problems_of(node).empty());
}

TEST_CASE("problems: a canary that failed is one problem, its rollout's", "[bringup]") {
  const rollout::Record record = with_canary_failed();
  ClusterNow now;
  now.rollout = &record;
  now.nodes = {well("gpu01"), well("gpu02"), well("gpu03")};
  now.nodes[0].state = NodeState::quarantined;
  now.nodes[0].reason = "no link";
  const auto problems = current_problems(now);
  CHECK(count(problems, CauseKind::rollout_stopped) == 1);
  CHECK(count(problems, CauseKind::node_failed) == 1);
  REQUIRE(problems.size() == 2);
  for (const Problem& problem : problems)
    CHECK(problem.node == (problem.kind == CauseKind::rollout_stopped ? "gpu01" : "gpu02"));

  // Re-imaged by hand since: well again.
  now.nodes[1].image_digest = "sha256:other";
  CHECK(count(current_problems(now), CauseKind::node_failed) == 0);
}

TEST_CASE("problems: a node that went back is one over new builds, until it runs another image",
          "[bringup]") {
  rollout::Record record = with_canary_failed();
  record.row->held.clear();
  record.row->failed.erase("gpu01");
  ClusterNow now;
  now.rollout = &record;
  now.nodes = {well("gpu02")};
  REQUIRE(count(current_problems(now), CauseKind::node_failed) == 1);
  const std::string id = find_causes(current_problems(now), {}).front().id;
  for (int night = 0; night < 2; ++night) {
    record = rollout::with_builds(record, record, {"node"}).value();
    REQUIRE(current_problems(now).size() == 1);  // the images are being built
    CHECK(find_causes(current_problems(now), {}).front().id == id);
    record = rollout::after_builds(record, {}, night == 0 ? "target" : "another target");
    REQUIRE(current_problems(now).size() == 1);
    CHECK(find_causes(current_problems(now), {}).front().id == id);
  }
  CHECK(record.row->failed.empty());
  CHECK(current_problems(now).size() == 1);
  now.nodes[0].image_digest = "sha256:newer";
  CHECK(current_problems(now).empty());
}

TEST_CASE("problems: of a canary that failed, silence and a manual task are problems of their own",
          "[bringup]") {
  const rollout::Record record = with_canary_failed();
  ClusterNow now;
  now.rollout = &record;
  now.nodes = {well("gpu01")};
  CHECK(current_problems(now).size() == 1);
  now.nodes[0].silent_since = 5;
  CHECK(count(current_problems(now), CauseKind::node_silent) == 1);
  now.nodes[0].by_hand = "power it on";
  CHECK(count(current_problems(now), CauseKind::node_waits) == 1);
  now.nodes[0].state = NodeState::quarantined;
  now.nodes[0].reason = "no link";
  CHECK(current_problems(now).size() == 1);
}

TEST_CASE("problems: a canary that failed is one of its own when it fails for another reason", "[bringup]") {
  rollout::Record record = with_canary_failed();
  record.row->failed.erase("gpu02");
  ClusterNow now;
  now.rollout = &record;
  now.nodes = {well("gpu01")};
  NodeNow& node = now.nodes[0];
  SECTION("quarantined") {
    node.state = NodeState::quarantined;
    node.reason = "a disk is missing";
  }
  SECTION("back in its old system, in another run") {
    node.in_run = NodeRunState::returned;
    node.reason = "no link";
    node.run_reason = "a disk is missing";
  }
  const auto problems = current_problems(now);
  REQUIRE(problems.size() == 2);
  CHECK(count(problems, CauseKind::rollout_stopped) == 1);
  REQUIRE(count(problems, CauseKind::node_failed) == 1);
  CHECK(problems.back().node == "gpu01");
  CHECK(problems.back().reason.ends_with("a disk is missing"));
}

TEST_CASE("problems: the reason of a canary is the same one when one place has it cut", "[bringup]") {
  rollout::Record record = with_canary_failed();
  const std::string whole = "image: " + std::string(kLongestReason, 'x');
  record.row->held["sha256:new"].reason = short_reason(whole);
  ClusterNow now;
  now.rollout = &record;
  now.nodes = {well("gpu01")};
  now.nodes[0].state = NodeState::quarantined;
  now.nodes[0].reason = whole;
  CHECK(count(current_problems(now), CauseKind::node_failed) == 0);
}

TEST_CASE("problems: a canary that fails is none of its own before its batch has ended", "[bringup]") {
  rollout::Record record;
  record.id = 3;
  record.row = rollout::begun(3, "target");
  record.row->batch = rollout::Underway{1, 7, true, {{"gpu01", "sha256:new"}}};
  ClusterNow now;
  now.rollout = &record;
  now.nodes = {well("gpu01"), well("gpu02")};
  now.nodes[0].in_run = now.nodes[1].in_run = NodeRunState::returned;
  const auto problems = current_problems(now);
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].node == "gpu02");
  now.nodes[0].in_run = std::nullopt;
  now.nodes[0].silent_since = 5;  // of no run
  CHECK(count(current_problems(now), CauseKind::node_silent) == 1);
  record.row->batch->canary = false;
  now.nodes[0].in_run = NodeRunState::returned;
  CHECK(count(current_problems(now), CauseKind::node_failed) == 2);
}

TEST_CASE("problems: a node that went back has one reason, in its run and behind it", "[bringup]") {
  const rollout::Record record = with_canary_failed();
  ClusterNow now;
  now.rollout = &record;
  now.nodes = {well("gpu02")};
  now.nodes[0].in_run = NodeRunState::returned;
  now.nodes[0].run_reason = record.row->failed.at("gpu02").reason;
  const auto reason_now = [&now] {
    for (const Problem& problem : current_problems(now))
      if (problem.node == "gpu02") return problem.reason;
    return std::string();
  };
  const std::string in_run = reason_now();
  CHECK(in_run.ends_with("no disk"));
  now.nodes[0].in_run = std::nullopt;
  CHECK(reason_now() == in_run);
}

TEST_CASE("problems: a rollout that stands still, and a night without result", "[bringup]") {
  rollout::Record record = with_canary_failed();
  record.row->held.clear();
  record.row->failed.clear();
  ClusterNow now;
  now.rollout = &record;
  CHECK(current_problems(now).empty());
  SECTION("paused") {
    record.row->paused = true;
    record.why_paused = "cancelled";
    REQUIRE(current_problems(now).size() == 1);
    CHECK(current_problems(now).front().kind == CauseKind::rollout_stopped);
  }
  SECTION("nothing was updated") {
    record.last_window = rollout::WindowResult{};
    record.last_window->outcome = rollout::WindowOutcome::nothing;
    record.last_window->ended = 77;
    REQUIRE(current_problems(now).size() == 1);
    CHECK(current_problems(now).front().kind == CauseKind::window_bad);
    CHECK(current_problems(now).front().since == 77);
  }
  SECTION("stopped, and the next window is open: it is the same until that has a result") {
    record.last_window = rollout::WindowResult{};
    record.last_window->outcome = rollout::WindowOutcome::stopped;
    record.last_window->why = "no-canary";
    record.row->stage = rollout::Stage::stopped;
    record.row->stop = rollout::StopReason::no_canary;
    const auto before = current_problems(now);
    record.row = rollout::started_again(*record.row, "target").value();
    record.row->stage = rollout::Stage::canary;
    const auto after = current_problems(now);
    REQUIRE((before.size() == 1 && after.size() == 1));
    CHECK(before.front().kind == CauseKind::rollout_stopped);
    CHECK(after.front().kind == CauseKind::rollout_stopped);
    CHECK(find_causes(before, {}).front().id == find_causes(after, {}).front().id);
  }
  SECTION("stopped by its canaries: also in the next window their images are the problem") {
    record = with_canary_failed();
    record.last_window = rollout::WindowResult{};
    record.last_window->outcome = rollout::WindowOutcome::stopped;
    record.last_window->why = "canary-failed";
    REQUIRE(current_problems(now).size() == 1);
    CHECK(current_problems(now).front().image == "node");
  }
  SECTION("the rollout is done, and nodes are left") {
    record.row->stage = rollout::Stage::done;
    record.last_window = rollout::WindowResult{};
    record.last_window->outcome = rollout::WindowOutcome::partial;
    record.last_window->why = "unavailable";
    REQUIRE(current_problems(now).size() == 1);
    CHECK(current_problems(now).front().kind == CauseKind::window_bad);
  }
  SECTION("what came of the last window before an approval does not count behind it") {
    record.last_window = rollout::WindowResult{};
    record.last_window->outcome = rollout::WindowOutcome::nothing;
    record.last_window->ended = 77;
    record.approval.time = 78;
    CHECK(current_problems(now).empty());
  }
  SECTION("nodes failed, which are problems of their own") {
    record.last_window = rollout::WindowResult{};
    record.last_window->outcome = rollout::WindowOutcome::partial;
    record.last_window->failed = 2;
    CHECK(current_problems(now).empty());
  }
}

TEST_CASE("problems: storage counts for nodes that are well otherwise", "[bringup]") {
  ClusterNow now;
  now.nodes = {well("gpu01"), well("gpu02"), well("gpu03")};
  now.nodes[1].silent_since = 5;
  Json problems = Json::array();
  for (const char* name : {"gpu01", "gpu01", "gpu02", "gone"})
    problems.push_back({{"node", name}, {"problem", "md0 is degraded"}});
  now.storage.push_back({{"name", "scratch"}, {"problems", problems}});
  const auto found = current_problems(now);
  REQUIRE(found.size() == 2);
  CHECK(count(found, CauseKind::node_silent) == 1);
  CHECK(count(found, CauseKind::node_degraded) == 1);
}

TEST_CASE("problems: what a node that is being installed has not mounted yet is none", "[bringup]") {
  ClusterNow now;
  now.nodes = {well("gpu01")};
  const Json absent = {{"node", "gpu01"}, {"problem", "/scratch is not mounted"}};
  now.storage.push_back({{"name", "scratch"}, {"problems", Json::array({absent})}});
  CHECK(count(current_problems(now), CauseKind::node_degraded) == 1);
  now.nodes[0].state = NodeState::installing;
  CHECK(current_problems(now).empty());
  now.nodes[0].silent_since = 5;
  CHECK(count(current_problems(now), CauseKind::node_silent) == 1);
}

TEST_CASE("problems: what a node has not mounted is one five minutes after it booted", "[bringup]") {
  ClusterNow now;
  now.nodes = {well("gpu01"), well("gpu02")};
  now.nodes[0].boot_id = now.nodes[1].boot_id = "first";
  const Json absent = {{"node", "gpu01"}, {"problem", "/scratch is not mounted"}};
  std::map<NodeName, Boot> boots;
  StorageProblems lasting;
  const auto problems_at = [&](DurationMs span, const Json& problems) {
    const SteadyMs at{kDay + span};
    boots = boots_seen(boots, now.nodes, at);
    for (NodeNow& node : now.nodes) node.starting = is_starting(boots[node.name], at);
    now.storage = Json::array({{{"name", "scratch"}, {"problems", problems}}});
    lasting = lasting_problems(now.storage, lasting, now.nodes);
    return count(current_problems(now), CauseKind::node_degraded);
  };
  const Json none = Json::array(), one = Json::array({absent});
  CHECK(problems_at(0, one) == 1);  // its boot may have been long ago
  CHECK(problems_at(kMinute, none) == 0);
  now.nodes[1].boot_id = "second";
  CHECK(problems_at(2 * kMinute, one) == 1);
  CHECK(problems_at(3 * kMinute, none) == 0);
  now.nodes[0].boot_id = "second";
  CHECK(problems_at(4 * kMinute, one) == 0);
  CHECK(problems_at(9 * kMinute - 1, one) == 0);
  CHECK(problems_at(9 * kMinute, one) == 1);
}

TEST_CASE("problems: what a node had not mounted before it was away still is one", "[bringup]") {
  Copies c;
  NodeNow& node = c.now.nodes[1];
  const Json none = Json::array(), absent = Json::array({c.absent});
  c.with(absent);
  REQUIRE(c.problems_at(0, {}) == 1);
  SECTION("it is switched, until it has mounted it") {
    node.switched = true;
    CHECK(c.problems_at(kMinute, {}) == 1);
    c.with(none, "store02");
    CHECK(c.problems_at(2 * kMinute, {}) == 1);
    node.switched = false;
    node.starting = true;
    c.with(absent);
    CHECK(c.problems_at(3 * kMinute, {}) == 1);
    c.with(none);
    CHECK(c.problems_at(4 * kMinute, {}) == 0);
    c.with(absent);
    CHECK(c.problems_at(5 * kMinute, {}) == 0);
  }
  SECTION("it boots so fast that it was not silent") {
    node.starting = true;
    CHECK(c.problems_at(kMinute, {}) == 1);
  }
  SECTION("it was silent, which was its problem meanwhile") {
    node.silent_since = 5;
    c.with(none, "store02");
    CHECK(c.problems_at(kMinute, {}) == 0);
    node.silent_since = 0;
    node.starting = true;
    c.with(absent);
    CHECK(c.problems_at(2 * kMinute, {}) == 1);
  }
  SECTION("it was installed again") {
    node.state = NodeState::installing;
    CHECK(c.problems_at(kMinute, {}) == 0);
    node.state = NodeState::accepted;
    node.starting = true;
    CHECK(c.problems_at(2 * kMinute, {}) == 0);
  }
}

TEST_CASE("problems: what an engine reported through a node that is switched lasts until it is known",
          "[bringup]") {
  Copies c;
  const Json none = Json::array();
  c.with(Json::array({c.lost}));
  REQUIRE(c.problems_at(0, {}) == 1);
  c.now.nodes[0].switched = true;
  c.with(none, "store01");
  CHECK(c.problems_at(kMinute, {}) == 1);
  CHECK(c.problems_at(2 * kMinute, {"shared"}) == 1);  // nor is it a run's doing
  c.with(none);
  CHECK(c.problems_at(3 * kMinute, {}) == 0);
}

TEST_CASE("problems: copies that are missing because a run took a member are none until they should be back",
          "[bringup]") {
  Copies c;
  CHECK(c.problems_at(0, {"other"}) == 0);
  c.with(Json::array({c.lost}));
  CHECK(c.problems_at(0, {"other"}) == 1);
  c.with(Json::array());
  CHECK(c.problems_at(0, {"shared"}) == 0);
  c.with(Json::array({c.lost}));
  CHECK(c.problems_at(10 * kMinute, {"shared"}) == 0);
  SECTION("it heals: what is lost later is a problem") {
    CHECK(c.problems_at(20 * kMinute, {}) == 0);
    c.with(Json::array());
    CHECK(c.problems_at(21 * kMinute, {}) == 0);
    c.with(Json::array({c.lost}));
    CHECK(c.problems_at(22 * kMinute, {}) == 1);
  }
  SECTION("it does not heal within an hour") {
    CHECK(c.problems_at(69 * kMinute, {}) == 0);
    CHECK(c.problems_at(71 * kMinute, {}) == 1);
  }
  SECTION("what a node has not mounted is a problem all the same") {
    c.with(Json::array({c.lost, c.absent}));
    CHECK(c.problems_at(20 * kMinute, {}) == 1);
  }
}

TEST_CASE("problems: what an engine reports is one also where the node that reports it has another",
          "[bringup]") {
  Copies c;
  c.with(Json::array({c.lost}));
  CHECK(c.problems_at(0, {}) == 1);
  NodeNow& reports = c.now.nodes[0];
  SECTION("it is degraded") {
    reports.state = NodeState::degraded;
    CHECK(c.problems_at(0, {}) == 2);
  }
  SECTION("it is being installed, by a run that found the copies missing") {
    reports.state = NodeState::installing;
    CHECK(c.problems_at(0, {"shared"}) == 1);
  }
  SECTION("no other node is well") {
    reports.state = NodeState::degraded;
    c.now.nodes[1].silent_since = 5;
    CHECK(c.problems_at(0, {}) == 1);
  }
}

TEST_CASE("problems: copies that were missing before a run took a member still are one", "[bringup]") {
  Copies c;
  c.with(Json::array({c.lost}));
  CHECK(c.problems_at(0, {}) == 1);
  CHECK(c.problems_at(kMinute, {"shared"}) == 1);
  CHECK(c.problems_at(2 * kMinute, {}) == 1);
  CHECK(c.problems_at(3 * kMinute, {"shared"}) == 1);
  // Those are back: what is missing now is the run's doing.
  c.with(Json::array());
  CHECK(c.problems_at(4 * kMinute, {"shared"}) == 0);
  c.with(Json::array({c.lost}));
  CHECK(c.problems_at(5 * kMinute, {"shared"}) == 0);
}

TEST_CASE("problems: to a controller that starts, what is missing while a run has a member is its doing",
          "[bringup]") {
  Copies c;
  c.with(Json::array({c.lost}));
  CHECK(c.problems_at(0, {"shared"}) == 0);
  CHECK(c.problems_at(kMinute, {}) == 0);
}

TEST_CASE("problems: those of the controller have the kind of their topic", "[bringup]") {
  ClusterNow now;
  now.controller = {{"dhcp", "no interface"}, {"receiver ops", "500"}};
  const auto found = current_problems(now);
  REQUIRE(found.size() == 2);
  CHECK(count(found, CauseKind::controller) == 1);
  CHECK(count(found, CauseKind::receiver) == 1);
}

TEST_CASE("problems: a certificate of the controller is one from two weeks before its end", "[bringup]") {
  constexpr DurationMs kOneDay = 24 * 60 * kMinute;
  ClusterNow now;
  now.time = 1'700'000'000'000;
  now.certificates = {{"ca", now.time + 3000 * kOneDay}, {"server", now.time + 14 * kOneDay}};
  CHECK(current_problems(now).empty());
  now.time += 1;
  const auto problems = current_problems(now);
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].kind == CauseKind::controller);
  CHECK(problems[0].node.empty());
  CHECK(problems[0].part == "certificate server");
  CHECK(!problems[0].next.empty());
  now.time += 30 * kOneDay;  // it has ended
  CHECK(current_problems(now).size() == 1);
  now.time += 3000 * kOneDay;
  const auto both = current_problems(now);
  REQUIRE(both.size() == 2);
  CHECK(both[0].next == "muster replace ca");
}

TEST_CASE("problems: an image that a window did not build is one until it is built", "[bringup]") {
  rollout::Record record;
  record.id = 3;
  record.row = rollout::begun(3, "target");
  record.window.opened = 1000;
  record.window.builds["gpu"] = {3, 1000, 2000, "no mirror"};
  record.window.builds["cpu"] = {1, 2000, 0, "no mirror"};  // is tried again
  ClusterNow now;
  now.rollout = &record;
  now.built_at = {{"gpu", 10}, {"cpu", 10}};
  const auto is_the_image = [&now] {
    const auto problems = current_problems(now);
    return problems.size() == 1 && problems[0].kind == CauseKind::image_build && problems[0].image == "gpu";
  };
  CHECK(is_the_image());

  rollout::WindowResult last;
  last.outcome = rollout::WindowOutcome::partial;
  last.why = "images";
  last.opened = 1000;
  last.unbuilt["gpu"] = "no mirror";
  record.last_window = last;
  record.window = {};
  CHECK(is_the_image());
  record.last_window->why = "failed";
  record.last_window->failed = 2;  // problems of their own, too
  CHECK(is_the_image());
  record.window.opened = 5000;
  record.window.builds["gpu"] = {1, 5000, 0, ""};
  CHECK(is_the_image());

  SECTION("by the next window") { record.window.builds["gpu"].ended = 6000; }
  SECTION("by hand") { now.built_at["gpu"] = 1500; }
  SECTION("or the spec does not declare it any more") { now.built_at.clear(); }
  CHECK(current_problems(now).empty());
}

TEST_CASE("problems: those of the controller stay the same causes in other words", "[bringup]") {
  ClusterNow now;
  std::set<std::string> ids;
  for (const char* text : {"no interface", "dnsmasq exited with 2", "cannot bind"}) {
    for (const char* topic : {"dhcp", "store", "image node", "image login", "receiver ops", "receiver mail"})
      now.controller[topic] = text;
    for (const Cause& cause : find_causes(current_problems(now), {})) ids.insert(cause.id);
  }
  CHECK(ids.size() == 6);
}

TEST_CASE("problems: only nodes in service are compared", "[bringup]") {
  NodeNow node = well("gpu01");
  CHECK(counts(node));
  node.held_by = HeldBy::an_operator;
  CHECK(!counts(node));
  node = well("gpu01");
  for (const NodeState state : {NodeState::unknown, NodeState::discovered, NodeState::unadmitted,
                                NodeState::drained, NodeState::draining}) {
    node.state = state;
    CHECK(!counts(node));
  }
}
