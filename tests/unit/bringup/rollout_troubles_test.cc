// What keeps nodes of a rollout from coming through, and a controller that is killed in the middle.
#include "tests/unit/bringup/rollout_service_fixture.h"

using namespace muster;
using namespace muster::rollout;
using namespace muster::rollout::service_test;

TEST_CASE("rollout service: a plan beyond the approval waits for a person", "[rollout][service]") {
  World w(3);
  w.cluster.destroys = true;
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  CHECK(w.cluster.runs.empty());
  CHECK(w.state() == "paused");
  CHECK(w.status()["why_paused"] != "");
  w.cluster.destroys = false;
  REQUIRE(w.resume().ok());
  CHECK(w.cluster.runs.size() == 1);
}

TEST_CASE("rollout service: nodes that the planner refuses are left for the night", "[rollout][service]") {
  World w(4);
  w.cluster.refuse = {"n1"};
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.end_run();
  CHECK(w.run().nodes == Names{"n2", "n3"});
  w.end_run();
  CHECK(w.status()["waits_for"] == "night");
  CHECK(w.service->record()->row->postponed.at("n1").refused);
  CHECK(w.service->record()->left.at("n1") == "refused: storage-needed: as the test says");
  w.cluster.refuse.clear();
  w.reactor.advance(w.cluster.spec.window);
  REQUIRE(w.start().ok());
  CHECK(w.run().nodes == Names{"n1"});
}

TEST_CASE("rollout service: nodes without a way are left, and the rollout ends", "[rollout][service]") {
  World w(3);
  w.cluster.no_way = {"n1", "n2"};
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.end_run();
  CHECK(w.state() == "done");
  CHECK(w.cluster.runs.size() == 1);
}

TEST_CASE("rollout service: a cancelled run pauses it", "[rollout][service]") {
  World w(3);
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.cluster.cancelled = {1};
  w.cluster.outcome["n0"] = {Outcome::unfinished, "cancelled"};
  w.end_run();
  CHECK(w.state() == "paused");
  CHECK(w.cluster.runs.size() == 1);
}

TEST_CASE("rollout service: it waits for a section to heal, and looks again by itself",
          "[rollout][service]") {
  World w(4);
  w.cluster.groups.push_back({"data", GroupKind::storage, 1, true});
  for (const char* name : {"n1", "n2", "n3"}) w.cluster.node(name).groups = {0};
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.end_run();
  CHECK(w.run().nodes == Names{"n1"});
  w.cluster.groups[0].healed = false;
  w.end_run();
  CHECK(w.cluster.runs.size() == 2);
  CHECK(w.status()["waits_for"] == "healing");
  w.cluster.groups[0].healed = true;
  w.reactor.advance(RolloutService::kAgain + 1000);
  CHECK(w.run().nodes == Names{"n2"});
}

TEST_CASE("rollout service: a window that closes while a section heals leaves nodes with that reason",
          "[rollout][service]") {
  World w(3);
  w.cluster.groups.push_back({"data", GroupKind::storage, 1, true});
  for (const char* name : {"n1", "n2"}) w.cluster.node(name).groups = {0};
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.end_run();
  w.cluster.groups[0].healed = false;
  w.end_run();
  CHECK(w.status()["waits_for"] == "healing");
  w.reactor.advance(w.cluster.spec.window + RolloutService::kAgain);
  CHECK(w.service->record()->left == std::map<std::string, std::string>{{"n2", "healing: data"}});
}

TEST_CASE("rollout service: status knows the nodes without a way, as the loop does", "[rollout][service]") {
  World w(4);
  w.cluster.no_way = {"n3"};
  w.cluster.refuse = {"n1"};
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.end_run();
  CHECK(w.run().nodes == Names{"n2"});
  w.end_run();
  CHECK(w.status()["waits_for"] == "night");
  CHECK(w.service->record()->left.at("n3") == "no-way: as the test says");
}

TEST_CASE("rollout service: a run that ended unannounced is found within a minute", "[rollout][service]") {
  World w(3);
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.cluster.end_run();
  w.reactor.advance(RolloutService::kAgain + 1000);
  CHECK(w.cluster.runs.size() == 2);
}

TEST_CASE("rollout service: killed before its run was known, it finds it again", "[rollout][service]") {
  World w(3);
  REQUIRE(w.approve().ok());
  w.cluster.die_at_start = true;
  REQUIRE(w.start().ok());
  CHECK(w.cluster.runs.size() == 1);
  CHECK(w.service->record()->row->batch->run == 0);
  w.cluster.die_at_start = false;
  w.kill();
  CHECK(w.cluster.runs.size() == 1);
  REQUIRE(w.service->record()->row->batch);
  CHECK(w.service->record()->row->batch->run == 1);
  w.end_run();
  CHECK(w.cluster.runs.size() == 2);
}

TEST_CASE("rollout service: killed before its run began, the batch begins once more", "[rollout][service]") {
  World w(3);
  REQUIRE(w.approve().ok());
  w.cluster.die_at_start = true;
  REQUIRE(w.start().ok());
  w.cluster.runs.clear();  // its row was not durable
  w.cluster.taken.clear();
  w.cluster.die_at_start = false;
  w.kill();
  CHECK_FALSE(w.service->record()->row->batch);
  w.reactor.advance(RolloutService::kAgain + 1000);
  REQUIRE(w.cluster.runs.size() == 1);
  CHECK(w.cluster.taken == std::map<std::string, int>{{"n0", 1}});
}

TEST_CASE("rollout service: killed at any point, no node is taken twice and all come through",
          "[rollout][service]") {
  for (const auto unsynced : {MemStore::Unsynced::lost, MemStore::Unsynced::kept})
    for (int at = 0; at < 60; ++at) {
      INFO("killed after " << at << " tasks");
      World w(4);
      REQUIRE(w.approve().ok());
      w.service->start({}, [](Result<Json>) {});
      for (int i = 0; i < at && w.reactor.step(w.reactor.steady().ms + 50); ++i)
        if (!w.cluster.runs.empty() && !w.run().over && i % 3 == 2) {
          w.cluster.end_run();
          w.service->poke();
        }
      w.kill(unsynced);
      for (int i = 0; i < 20 && w.state() != "done"; ++i) {
        (void)w.start();  // it may not have been durable
        if (!w.cluster.runs.empty() && !w.run().over) w.end_run();
        w.reactor.advance(RolloutService::kAgain + 1000);
      }
      CHECK(w.state() == "done");
      CHECK(w.cluster.taken.size() == 4);
      for (const auto& [node, times] : w.cluster.taken) CHECK(times == 1);
    }
}

TEST_CASE("rollout service: a record that cannot be written leaves everything as it was",
          "[rollout][service]") {
  World w(3);
  REQUIRE(w.approve().ok());
  w.store.fail_next(1, fail(Code::failed, "disk full"));
  CHECK_FALSE(w.start().ok());
  CHECK(w.state() == "approved");
  REQUIRE(w.start().ok());
  w.store.fail_next(1, fail(Code::failed, "disk full"));
  w.end_run();
  CHECK(w.service->record()->row->batch);
  w.reactor.advance(RolloutService::kAgain + 1000);
  CHECK(w.cluster.runs.size() == 2);
}

TEST_CASE("rollout service: an approval is refused while a batch is under way", "[rollout][service]") {
  World w(3);
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  CHECK(code_of(w.approve()) == Code::conflict);
}

TEST_CASE("rollout service: a plan says of each node which batch it is in, or why in none",
          "[rollout][service]") {
  World w(4);
  w.cluster.no_way = {"n2"};
  const Json plan = w.request([&](auto done) { w.service->plan(done); }).value();
  CHECK(plan["approved"] == false);
  CHECK(plan["approval"]["digest"] == digest_of(w.cluster.now));
  REQUIRE(plan["batches"].size() == 2);
  CHECK(plan["batches"][0]["canary"] == true);
  CHECK(plan["batches"][1]["nodes"] == Json(Names{"n1", "n3"}));
  REQUIRE(plan["nodes"].size() == 4);
  CHECK(plan["nodes"][0]["batch"] == 1);
  CHECK(plan["nodes"][1]["way"] == "in-place");
  CHECK(plan["nodes"][2]["batch"] == 0);
  CHECK(plan["nodes"][2]["reason"] == "no-way");
  CHECK(w.cluster.runs.empty());
}

TEST_CASE("rollout service: a node without a way is left, also where its group misses a member",
          "[rollout][service]") {
  World w(3);
  w.cluster.no_way = {"n1"};
  w.cluster.groups = {{.name = "shared", .can_miss = 1, .healed = false}};
  w.cluster.nodes[1].groups = {0};
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.end_run();
  w.end_run();
  CHECK(w.state() == "done");
  CHECK(w.service->record()->left.at("n1").find("no-way") == 0);
}

TEST_CASE("rollout service: a plan that is shown does not discard a batch that is being planned",
          "[rollout][service]") {
  World w(3);
  w.cluster.hold_plan = true;
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  REQUIRE(w.request([&](auto done) { w.service->plan(done); }).ok());
  w.cluster.held_plan();
  w.settle();
  CHECK(w.cluster.orders.size() == 1);
  CHECK(w.cluster.runs.size() == 1);
}

TEST_CASE("rollout service: another approval ends a rollout that is not done", "[rollout][service]") {
  World w(5);
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  REQUIRE(w.pause().ok());
  w.end_run();
  REQUIRE(w.approve().ok());
  CHECK(w.state() == "approved");
  const Record old = record_from_text(w.store.rollout(1)->text).value();
  CHECK(state_of(old) == "stopped");
  CHECK(old.row->stop == StopReason::replaced);
  CHECK(old.ended > 0);
  w.restart();
  CHECK(w.status()["id"] == 2);
}
