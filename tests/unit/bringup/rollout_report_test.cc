// The report of a rollout, from the journals of its runs.
#include "controller/rollout/service/rollout_report.h"

#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fakes/mem_store.h"

using namespace muster;
using namespace muster::rollout;

namespace {

struct Runs {
  ManualReactor reactor;
  MemStore store{reactor};
  TimeMs time = 1000;

  void write(std::vector<Write> rows) {
    store.write(std::move(rows), [](const Status& done) { REQUIRE(done.ok()); });
    reactor.advance(kSecond);
  }
  // A re-image of these nodes, each with the phases image and boot; `serving` have image only.
  void begins(int64_t id, const std::vector<std::string>& nodes, const std::vector<std::string>& serving = {},
              PlanKind kind = PlanKind::reimage) {
    Plan plan;
    plan.kind = kind;
    plan.nodes = nodes;
    plan.serving = serving;
    plan.nodes.insert(plan.nodes.end(), serving.begin(), serving.end());
    for (const auto& node : plan.nodes)
      for (const char* phase : {"image", "boot"}) {
        Action one;
        one.id = node + "/" + phase;
        one.node = NodeName(node);
        one.phase = phase;
        plan.actions.push_back(one);
      }
    const std::string digest = plan_digest(plan);
    write({PlanRow{digest, std::string(to_string(kind)), 1, time, plan_text(plan)},
           RunRow{id, digest, RunState::done, time, time, "test"}});
  }
  void happens(int64_t run, const std::string& node, const std::string& phase, const std::string& event,
               Json data = Json::object()) {
    JournalRow row;
    row.run = run;
    row.node = NodeName(node);
    row.action = phase.empty() ? "" : node + "/" + phase;
    row.attempt = phase.empty() ? 0 : 1;
    row.event = event;
    row.time = time;
    row.data = std::move(data);
    write({row});
  }
  void takes(int64_t run, const std::string& node, const std::string& phase, DurationMs ms,
             const std::string& end = "succeeded") {
    happens(run, node, phase, "intent");
    happens(run, node, phase, "started");
    time += ms;
    happens(run, node, phase, end);
  }
};

Result<PackageList> packages(const std::string& image) {
  if (image == "old") return PackageList{{"linux", "6.1"}, {"nvi", "1"}};
  if (image == "new") return PackageList{{"linux", "6.2"}, {"zsh", "5"}};
  return fail(Code::not_found, "not recorded");
}

Json node_of(const Json& report, const std::string& name, int64_t run) {
  for (const Json& node : report["nodes"])
    if (node["node"] == name && node["run"] == run) return node;
  FAIL("no node " + name);
  return {};
}

Json phase_of(const Json& node, const std::string& name) {
  for (const Json& phase : node["phases"])
    if (phase["phase"] == name) return phase;
  FAIL("no phase " + name);
  return {};
}

}  // namespace

TEST_CASE("rollout report: packages, times beside the node's own before, and what became of each node",
          "[rollout][bringup]") {
  Runs runs;
  runs.begins(1, {"n1", "n2"}, {"n3"});
  runs.takes(1, "n1", "image", 100);
  runs.takes(1, "n1", "boot", 300);
  runs.takes(1, "n2", "image", 100);
  runs.takes(1, "n2", "boot", 100, "failed");
  runs.happens(1, "n2", "", "returned", {{"reason", "returned to slot a: panic"}});
  runs.takes(1, "n3", "image", 100);
  runs.begins(2, {"n1"}, {}, PlanKind::accept);  // no re-image: no times to compare with
  runs.takes(2, "n1", "image", 9);
  runs.begins(3, {"n1"}, {"n2"});
  runs.takes(3, "n1", "image", 150);
  runs.takes(3, "n1", "boot", 250);
  runs.begins(4, {"n2", "n3"});
  for (const char* node : {"n2", "n3"}) runs.takes(4, node, "image", 50);
  runs.takes(4, "n2", "boot", 60, "failed");
  runs.happens(4, "n2", "", "returned", {{"reason", "returned to slot a: no disk"}});
  runs.takes(4, "n3", "boot", 70);

  Record record;
  record.id = 1;
  record.row = begun(1, "t1");
  record.before = {{"n1", "old"}, {"n2", "old"}, {"n3", "older"}};
  record.runs = {{1, 3, true, {{"n1", "new"}}}, {2, 4, false, {{"n2", "new"}, {"n3", "new"}}}};
  record.left = {{"n4", "silent"}};
  const auto made = rollout_report(record, runs.store, packages);
  CAPTURE(made.ok() ? "" : made.error().message);
  REQUIRE(made.ok());
  const Json& report = *made;

  REQUIRE(report["images"].size() == 2);
  const Json& changed = report["images"][0];
  CHECK(changed["nodes"] == Json::array({"n1", "n2"}));
  CHECK(changed["packages"]["changed"]["linux"] == Json({{"from", "6.1"}, {"to", "6.2"}}));
  CHECK(changed["packages"]["added"] == Json({{"zsh", "5"}}));
  CHECK(changed["packages"]["removed"] == Json({{"nvi", "1"}}));
  CHECK(report["images"][1]["packages"].is_null());  // not recorded, and no guess

  const Json first = node_of(report, "n1", 3);
  CHECK(first["canary"] == true);
  CHECK(first["batch"] == 1);
  CHECK(phase_of(first, "image") == Json({{"phase", "image"}, {"ms", 150}, {"before_ms", 100}}));
  CHECK(phase_of(first, "boot")["before_ms"] == 300);
  const Json failed = node_of(report, "n2", 4);
  CHECK(failed["result"] != first["result"]);
  CHECK(failed["reason"].get<std::string>().find("no disk") != std::string::npos);
  CHECK(phase_of(failed, "image")["before_ms"].is_null());  // the one before failed, too
  // As a node of the next batch only its slot was written.
  CHECK(phase_of(node_of(report, "n3", 4), "image")["before_ms"].is_null());
  CHECK(report["nodes"].size() == 3);
  CHECK(report["left"] == Json({{"n4", "silent"}}));
}

TEST_CASE("rollout report: a run that the store has lost is an error, and no empty report",
          "[rollout][bringup]") {
  Runs runs;
  Record record;
  record.id = 1;
  record.row = begun(1, "t1");
  record.runs = {{1, 9, true, {{"n1", "new"}}}};
  CHECK_FALSE(rollout_report(record, runs.store, packages).ok());
  record.runs.clear();
  const auto empty = rollout_report(record, runs.store, packages);
  REQUIRE(empty.ok());
  CHECK((*empty)["nodes"].empty());
}
