// Causes over the API: in the status and in the answer to `why`, and the same after a restart.
#include <filesystem>
#include <fstream>

#include "base/json_at.h"
#include "base/json_dump.h"
#include "controller/bringup/current_causes.h"
#include "controller/executor/executor.h"
#include "controller/notices/book.h"
#include "controller/rollout/rollout_record.h"
#include "tests/source_dir.h"
#include "tests/unit/api/controller.h"
#include "tests/unit/plan/fixture.h"
#include "tests/unit/plan/spec_text.h"

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

// node10 to node99, which are equal; the first three failed, each for a reason of its own.
struct NinetyNodes : Controller {
  NinetyNodes() : Controller(source_dir() + "/playbooks", "/bin/true") {
    std::string spec = testing::replaced(testing::kSpec, "[ base, storage, shared ]", "[ base ]");
    spec = testing::replaced(spec, "node[01-03]", "node[10-99]");
    spec = testing::replaced(spec, R"([ "52:54:00:20:00:01", "52:54:00:20:00:02", "52:54:00:20:00:03" ])",
                             R"("52:54:00:20:00:{n}")");
    REQUIRE(call(Listener::local, "PUT", "/v1/spec", spec).status == 200);
    have_firmware(10, 99, "1.0", 1);
    on_reactor([&] {
      Executor& executor = services().executor;
      for (int i = 10; i <= 99; ++i)
        executor.set_node(name_at(i), [](NodeRow& row) { row.state = NodeState::accepted; });
      executor.quarantine(name_at(10), "it did not boot", HeldBy::run);
      executor.quarantine(name_at(11), "no link", HeldBy::run);
      executor.quarantine(name_at(12), "no disk", HeldBy::run);
    });
    settle();
  }
  static NodeName name_at(int i) { return NodeName("node" + std::to_string(i)); }
  void have_firmware(int first, int last, const std::string& firmware, TimeMs time) {
    HardwareFacts facts;
    facts.firmware = firmware;
    const FactsText text(dump_json(to_json(facts)));
    REQUIRE(text.facts() != nullptr);
    on_reactor([&] {
      for (int i = first; i <= last; ++i)
        services().executor.set_node(name_at(i), [text, time](NodeRow& row) {
          row.facts = text;
          row.facts_time = time;
        });
      services().causes.changed();
    });
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
    c.services().causes.changed();
  });
  const Json fewer = c.get("/v1/status")["causes"];
  REQUIRE(fewer.size() == 1);
  CHECK(fewer[0]["id"] == cause["id"]);
  CHECK(fewer[0]["since"] == cause["since"]);
  c.on_reactor([&] {
    c.services().executor.set_node("node02", [](NodeRow& row) { row.state = NodeState::accepted; });
    c.services().causes.changed();
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
  CHECK(after[0]["since"] == before[0]["since"]);
  for (const char* node : {"node01", "node02"})
    REQUIRE(c.call(Listener::local, "POST", std::string("/v1/nodes/") + node + "/quarantine", "{}").status ==
            200);
  CHECK(c.get("/v1/status")["causes"].empty());
}

TEST_CASE("api: what is left of a cause is the same one after a restart", "[api][causes]") {
  Cluster c;
  const Json before = c.get("/v1/status")["causes"];
  REQUIRE(before.size() == 1);
  notices::Book book;
  notices::OpenCause& open = book.causes["switch"];
  open.cause = text_at(before[0], "id");
  open.kind = text_at(before[0], "kind");
  open.common = text_at(before[0], "common");
  open.common_value = text_at(before[0], "common_value");
  open.nodes = {"node01", "node02"};
  open.since = integer_at(before[0], "since");
  std::promise<bool> written;
  c.on_reactor([&] {
    c.services().executor.set_node("node01", [](NodeRow& row) { row.state = NodeState::accepted; });
    c.services().store.write({NoticesRow{1, 1, notices::to_text(book)}},
                             [&](Status done) { written.set_value(done.ok()); });
  });
  REQUIRE(written.get_future().get());
  c.settle();
  c.restart();
  const Json after = c.get("/v1/status")["causes"];
  REQUIRE(after.size() == 1);
  CHECK(after[0]["nodes"] == Json::array({"node02"}));
  CHECK(after[0]["id"] == before[0]["id"]);
  CHECK(after[0]["since"] == before[0]["since"]);
}

TEST_CASE("api: what inventories have in common counts when all of them were read", "[api][causes]") {
  NinetyNodes c;
  // Of the first ones that are read, three failed; of all the others, none.
  CHECK(c.get("/v1/status")["causes"].size() == 3);
  c.on_reactor([&] {
    while (c.services().causes.read_inventories()) {
    }
    c.services().causes.changed();
  });
  CHECK(c.get("/v1/status")["causes"].size() == 3);
  c.have_firmware(10, 12, "2.0", 2);
  const Json causes = c.get("/v1/status")["causes"];
  REQUIRE(causes.size() == 1);
  CHECK(causes[0]["common"] == "firmware");
  CHECK(causes[0]["common_value"] == "2.0");
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
  c.on_reactor([&] { c.services().causes.changed(); });
  CHECK(c.get("/v1/status")["causes"].empty());
}
