// Causes over the API: in the status and in the answer to `why`, and the same after a restart.
#include <filesystem>
#include <fstream>

#include "controller/executor/executor.h"
#include "controller/rollout/rollout_record.h"
#include "tests/source_dir.h"
#include "tests/unit/api/controller.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using api::Listener;
using testing::Controller;

namespace {

// Both nodes behind leaf1 failed, each in its own way; the one behind leaf2 is well.
struct Cluster : Controller {
  Cluster() : Controller(source_dir() + "/playbooks", "/bin/true") {
    std::string spec = testing::kSpec;
    const std::string books = "[ base, storage, shared ]", role = "    role: cpu\n";
    spec.replace(spec.find(books), books.size(), "[ base ]");
    spec.insert(spec.find(role), "    rack: r1\n    switch: [ leaf1, leaf1, leaf2 ]\n");
    REQUIRE(call(Listener::local, "PUT", "/v1/spec", spec).status == 200);
    on_reactor([&] {
      Executor& executor = services().executor;
      executor.quarantine("node01", "it did not boot", HeldBy::run);
      executor.quarantine("node02", "no link", HeldBy::run);
      executor.set_node("node03", [](NodeRow& row) { row.state = NodeState::accepted; });
    });
    settle();
  }
};

}  // namespace

TEST_CASE("api: nodes behind one switch are one cause in status and why", "[api][causes]") {
  Cluster c;
  const Json status = c.get("/v1/status");
  REQUIRE(status["causes"].size() == 1);
  const Json cause = status["causes"][0];
  CHECK(cause["kind"] == "node_failed");
  CHECK(cause["common"] == "switch");
  CHECK(cause["common_value"] == "leaf1");
  CHECK(cause["nodes"] == Json::array({"node01", "node02"}));
  CHECK(cause["since"].get<int64_t>() > 0);
  CHECK(cause["next"] != "");
  CHECK(status["nodes"][0]["switch"] == "leaf1");
  CHECK(status["nodes"][0]["rack"] == "r1");

  CHECK(c.get("/v1/nodes/node01/why")["cause"]["id"] == cause["id"]);
  CHECK(!c.get("/v1/nodes/node03/why").contains("cause"));

  // One of them is well again: the same cause, until the other is, too.
  c.on_reactor([&] {
    c.services().executor.set_node("node01", [](NodeRow& row) { row.state = NodeState::accepted; });
  });
  const Json fewer = c.get("/v1/status")["causes"];
  REQUIRE(fewer.size() == 1);
  CHECK(fewer[0]["id"] == cause["id"]);
  CHECK(fewer[0]["since"] == cause["since"]);
  c.on_reactor([&] {
    c.services().executor.set_node("node02", [](NodeRow& row) { row.state = NodeState::accepted; });
  });
  CHECK(c.get("/v1/status")["causes"].empty());
}

TEST_CASE("api: a restart leaves a cause its id, and an operator's quarantine is none", "[api][causes]") {
  Cluster c;
  const Json before = c.get("/v1/status")["causes"];
  REQUIRE(before.size() == 1);
  c.restart();
  const Json after = c.get("/v1/status")["causes"];
  REQUIRE(after.size() == 1);
  CHECK(after[0]["id"] == before[0]["id"]);
  for (const char* node : {"node01", "node02"})
    REQUIRE(c.call(Listener::local, "POST", std::string("/v1/nodes/") + node + "/quarantine", "{}").status ==
            200);
  CHECK(c.get("/v1/status")["causes"].empty());
}

TEST_CASE("api: an image that a window did not build is a cause until it is built", "[api][causes]") {
  Controller c;
  REQUIRE(c.call(Listener::local, "PUT", "/v1/spec", testing::kSpec).status == 200);
  rollout::WindowResult last;
  last.outcome = rollout::WindowOutcome::partial;
  last.why = "images";
  last.opened = 1000;
  last.unbuilt["cpu"] = "no mirror";
  rollout::Record record;
  record.id = 1;
  record.row = rollout::begun(1, "target");
  record.last_window = last;
  std::promise<bool> written;
  c.on_reactor([&] {
    c.services().store.write({RolloutRow{record.id, 1, rollout::to_text(record)}},
                             [&](Status done) { written.set_value(done.ok()); });
  });
  REQUIRE(written.get_future().get());
  REQUIRE(c.get("/v1/rollout")["id"] == 1);  // read from here on

  const Json causes = c.get("/v1/status")["causes"];
  REQUIRE(causes.size() == 1);
  CHECK(causes[0]["kind"] == "image_build");
  CHECK(causes[0]["next"] == "muster image build cpu --rebuild");
  std::filesystem::create_directories(c.state() + "/images/cpu/current");
  std::ofstream(c.state() + "/images/cpu/current/manifest.json") << "{}";
  CHECK(c.get("/v1/status")["causes"].empty());
}
