// What keeps nodes of a rollout from coming through, and a controller that is killed in the middle.
#include "tests/unit/bringup/rollout_service_fixture.h"

using namespace muster;
using namespace muster::rollout;
using namespace muster::rollout::service_test;

TEST_CASE("rollout service: a node whose plan exceeds the approval is left, and the others go",
          "[rollout][service]") {
  World w(4);
  w.cluster.destroys = {"n0", "n2"};
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  CHECK(w.run().nodes == Names{"n1"});
  w.end_run();
  CHECK(w.run().nodes == Names{"n3"});
  w.end_run();
  CHECK(w.status()["waits_for"] == "night");
  for (const char* node : {"n0", "n2"}) {
    CHECK(w.cluster.taken.count(node) == 0);
    CHECK(w.service->record()->row->postponed.at(node).refused);
  }
}

TEST_CASE("rollout service: a refusal of no node of the batch leaves that batch only", "[rollout][service]") {
  World w(4);
  w.cluster.spec.max_unavailable = 1;
  w.cluster.refuse_beside = "n0";  // whatever batch n0 is in
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  for (const char* node : {"n1", "n2", "n3"}) {
    CHECK(w.run().nodes == Names{node});
    w.end_run();
  }
  CHECK(w.service->record()->left.count("n0") == 1);
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

TEST_CASE("rollout service: a node that a person keeps out of the scheduler is left with who, when and why",
          "[rollout][service]") {
  const std::string words = "drained by ann since 2026-11-29T09:48:25: RMA 123";
  World w(3);
  w.cluster.node("n1").maintenance = true;
  w.cluster.node("n1").why_maintenance = words;
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.end_run();
  w.end_run();
  CHECK(w.state() == "done");
  CHECK(w.service->record()->left.at("n1") == "maintenance: " + words);
  const Json left = w.status()["left"];
  REQUIRE(left.size() == 1);
  CHECK(left[0]["reason"] == "maintenance");
  CHECK(left[0]["why"] == words);
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

TEST_CASE("rollout service: a failed canary is not the canary of the next approval", "[rollout][service]") {
  World w(4);
  w.cluster.outcome["n0"] = {Outcome::returned, "1 of 8 GPUs is missing"};
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.end_run();
  CHECK(w.state() == "stopped");
  CHECK(w.status()["held"][0]["image"] == "gpu");
  CHECK(w.status()["held"][0]["node"] == "n0");
  CHECK(w.request([&](auto done) { w.service->plan(done); }).value()["approved"] == false);
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  CHECK(w.run().nodes == Names{"n1"});
  w.end_run();
  CHECK(w.run().nodes == Names{"n2", "n3"});
  w.end_run();
  CHECK(w.run().nodes == Names{"n0"});  // it may have been the image, so it is updated with the others
  w.end_run();
  CHECK(w.service->record()->past.at("n0").failed == 2);
  CHECK(w.status()["past"][0]["reason"] == "1 of 8 GPUs is missing");
}

TEST_CASE("rollout service: an operator names the canary, also one that failed", "[rollout][service]") {
  World w(3);
  w.cluster.outcome["n0"] = {Outcome::returned, "bad image"};
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.end_run();
  CHECK(code_of(w.approve({"n7"})) == Code::invalid);
  w.cluster.node("n1").has_bmc = false;
  CHECK(code_of(w.approve({"n1"})) == Code::invalid);
  w.cluster.outcome.clear();
  const auto batch_of = [&](const std::vector<std::string>& canaries) {
    const Json plan = w.request([&](auto done) { w.service->plan(done, canaries); }).value();
    return plan["batches"].empty() ? Json() : plan["batches"][0]["nodes"];
  };
  CHECK(batch_of({}) == Json(Names{"n2"}));
  CHECK(batch_of({"n0"}) == Json(Names{"n0"}));
  REQUIRE(w.approve({"n0"}).ok());
  REQUIRE(w.start().ok());
  CHECK(w.run().nodes == Names{"n0"});
  w.end_run();
  CHECK(w.service->record()->past.at("n0").failed == 0);  // accepted with a new image
}

TEST_CASE("rollout service: a held image stays held when it is built again, until a new approval",
          "[rollout][service]") {
  World w(3);
  w.cluster.now.rebuilt_images = true;
  w.cluster.outcome["n0"] = {Outcome::returned, "panic"};
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  w.end_run();
  CHECK(code_of(w.start()) == Code::denied);
  w.cluster.now.images["gpu"].digest = "newer";
  CHECK(code_of(w.start()) == Code::denied);
  w.restart();
  CHECK(code_of(w.start()) == Code::denied);
  CHECK(w.cluster.runs.size() == 1);
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  CHECK(w.run().nodes == Names{"n1"});
}

TEST_CASE("rollout service: nodes that were given back come after others, over builds and approvals",
          "[rollout][service]") {
  World w(4);
  w.cluster.spec.max_unavailable = 1;
  for (Node& node : w.cluster.nodes) node.idle = false;
  w.cluster.now.rebuilt_images = true;
  w.cluster.outcome["n0"] = {Outcome::jobs, "job 12"};
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  CHECK(w.run().nodes == Names{"n0"});
  w.end_run();
  w.reactor.advance(w.cluster.spec.window);
  w.end_run();
  w.cluster.now.images["gpu"].digest = "newer";
  REQUIRE(w.start().ok());
  CHECK(w.service->record()->id == 2);
  CHECK(w.run().nodes == Names{"n2"});
  w.end_run();
  CHECK(w.run().nodes == Names{"n3"});
  REQUIRE(w.pause().ok());
  w.end_run();
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  CHECK(w.run().nodes == Names{"n1"});
}

TEST_CASE("rollout service: a skip outlives an approval and a build, and ends by its time",
          "[rollout][service]") {
  World w(3);
  REQUIRE(w.approve().ok());
  Record record = *w.service->record();
  record.skips["n0"] = {"customer demo", "ada", w.reactor.now(), w.reactor.now() + 60 * kMinute};
  w.store.write({RolloutRow{record.id, w.reactor.now(), to_text(record)}}, [](const Status&) {});
  w.settle();
  w.restart();
  REQUIRE(w.approve().ok());
  REQUIRE(w.start().ok());
  CHECK(w.run().nodes == Names{"n1"});
  w.end_run();
  w.end_run();
  CHECK(w.state() == "done");
  CHECK(w.service->record()->left.at("n0").starts_with("skipped: customer demo (by ada, until "));
  w.reactor.advance(60 * kMinute);
  REQUIRE(w.start().ok());
  CHECK(w.run().nodes == Names{"n0"});
}
