// An approval is for one plan, in the world it was made in, and for one run.
#include "controller/plan/planner.h"
#include "tests/unit/api/controller.h"
#include "tests/unit/plan/fixture.h"
#include "tests/source_dir.h"

using namespace muster;
using api::Door;
using testing::Controller;

namespace {

const std::string kKey = "SHA256:" + std::string(43, 'A');

// With one adopted node, whose plans need no image and no RAM system. Nothing answers for it: a run of it
// waits.
struct Cluster : Controller {
  Cluster() : Controller(source_dir() + "/playbooks", "/bin/true") {
    std::string spec = testing::kSpec;
    const std::string books = "[ base, storage, shared ]";
    spec.replace(spec.find(books), books.size(), "[ base ]");
    REQUIRE(call(Door::local, "PUT", "/v1/spec", spec).status == 200);
    HardwareFacts facts = *testing::seen_in_ram("31").facts;
    const Json host = {{"name", "spare01"}, {"like", "node03"}, {"host", "10.20.0.31"},
                       {"port", 22},        {"user", "root"},   {"host_key", kKey},
                       {"address", ""},     {"joined", false},  {"facts", to_json(facts)}};
    Json request = {{"hosts", {host}}};
    request["digest"] = good(call(Door::local, "POST", "/v1/nodes/adopt", request.dump()))["digest"];
    good(call(Door::local, "POST", "/v1/nodes/adopt", request.dump()));
  }
  Json good(const HttpResponse& answer) {
    INFO(answer.body);
    REQUIRE(answer.status == 200);
    return parse_json(answer.body).value();
  }
  std::string plan() {
    return good(
        call(Door::local, "POST", "/v1/plan", R"({"kind": "adopt", "nodes": ["spare01"]})"))["digest"];
  }
  HttpResponse approve(const std::string& digest) {
    return call(Door::local, "POST", "/v1/plans/" + digest + "/approve", "{}");
  }
  size_t runs() { return good(call(Door::local, "GET", "/v1/runs"))["runs"].size(); }
  std::string spec() { return good(call(Door::local, "GET", "/v1/spec"))["text"]; }
  // Until what was written before can be read.
  void settle() {
    for (int i = 0; i < 2; ++i) {
      std::promise<void> written;
      on_reactor([&] { services().store.write({EventRow{}}, [&](Status) { written.set_value(); }); });
      written.get_future().get();
    }
  }
};

std::string code_of(const HttpResponse& answer) { return parse_json(answer.body).value().value("code", ""); }

}  // namespace

TEST_CASE("an approval starts one run, and none after that", "[api][approve]") {
  Cluster c;
  const std::string digest = c.plan();
  CHECK(c.plan() == digest);  // looking again changes nothing about what is approved
  REQUIRE(c.approve(digest).status == 200);
  CHECK(c.approve(digest).status == 409);
  REQUIRE(c.call(Door::local, "POST", "/v1/runs/1/cancel").status == 200);
  c.settle();
  const auto repeated = c.approve(digest);
  CHECK(repeated.status == 409);
  CHECK(code_of(repeated) == "conflict");
  CHECK(c.approve(digest.substr(0, 20)).status == 409);
  CHECK(c.runs() == 1);
  // The same work once more is another plan, which nobody approved yet.
  const std::string again = c.plan();
  CHECK(again != digest);
  CHECK(c.approve(digest).status == 409);
  CHECK(c.runs() == 1);
  CHECK(c.approve(again).status == 200);
  CHECK(c.runs() == 2);
}

TEST_CASE("an approval used before a restart is used", "[api][approve]") {
  Cluster c;
  const std::string digest = c.plan();
  REQUIRE(c.approve(digest).status == 200);
  REQUIRE(c.call(Door::local, "POST", "/v1/runs/1/cancel").status == 200);
  c.settle();
  c.restart();
  CHECK(c.approve(digest).status == 409);
  CHECK(c.plan() != digest);
  CHECK(c.approve(digest).status == 409);
  CHECK(c.runs() == 1);
}

TEST_CASE("a plan of a world that changed is not carried out", "[api][approve]") {
  Cluster c;
  const std::string digest = c.plan();
  SECTION("another spec is stored: another plan") {
    std::string spec = c.spec();
    const std::string name = "cluster: ";
    spec.insert(spec.find(name), "# a remark\n");
    REQUIRE(c.call(Door::local, "PUT", "/v1/spec", spec).status == 200);
    REQUIRE(c.plan() != digest);
  }
  SECTION("what was found in it is another disk") {
    c.on_reactor([&] {
      c.services().bringup.executor().set_node("spare01", [](NodeRow& row) {
        const auto at = row.facts.find("FASTa31");
        REQUIRE(at != std::string::npos);
        row.facts.replace(at, 7, "FASTc31");
      });
    });
    REQUIRE(c.plan() != digest);
  }
  SECTION("an operator took the node out: no plan at all") {
    REQUIRE(c.call(Door::local, "POST", "/v1/nodes/spare01/quarantine", "{}").status == 200);
  }
  const auto refused = c.approve(digest);
  CHECK(refused.status == 409);
  CHECK(code_of(refused) == "conflict");
  c.settle();
  CHECK(c.runs() == 0);
}

TEST_CASE("a world that changes while an approved run is being prepared ends it before it begins",
          "[api][approve]") {
  Cluster c;
  const std::string digest = c.plan();
  std::promise<Result<int64_t>> answered;
  c.on_reactor([&] {
    c.services().bringup.approve(digest, "test",
                                 [&](Result<int64_t> run) { answered.set_value(std::move(run)); });
    c.services().bringup.executor().set_node("spare01", [](NodeRow& row) {
      const auto at = row.facts.find("FASTa31");
      REQUIRE(at != std::string::npos);
      row.facts.replace(at, 7, "FASTc31");
    });
  });
  const auto run = answered.get_future().get();
  REQUIRE_FALSE(run.ok());
  CHECK(run.error().code == Code::conflict);
  c.settle();
  CHECK(c.runs() == 0);
}

TEST_CASE("what was found on a node before its disks were written is not planned with", "[api][approve]") {
  Cluster c;
  TimeMs seen = 0;
  c.on_reactor([&] { seen = c.services().bringup.executor().node_row("spare01").facts_time; });
  REQUIRE(c.observed("spare01").facts.has_value());
  // What an action does is what the plan says of it, whatever it is called.
  Plan plan;
  plan.kind = PlanKind::install;
  for (const auto& [id, kind] : std::map<std::string, ActionKind>{{"spare01/write", ActionKind::image},
                                                                  {"spare01/image", ActionKind::steps}}) {
    Action action;
    action.id = id;
    action.node = "spare01";
    action.kind = kind;
    plan.actions.push_back(action);
  }
  const PlanRow stored{plan_digest(plan), "install", 1, 1, to_json(plan).dump()};
  const auto begun_at = [&](TimeMs time, const std::string& action, const std::string& digest) {
    c.on_reactor([&] {
      RunRow run;
      run.id = c.services().store.next_run_id();
      run.plan_digest = digest;
      run.state = RunState::partial;
      run.started = time;
      run.ended = seen + kMinute;
      JournalRow intent;
      intent.run = run.id;
      intent.node = "spare01";
      intent.action = action;
      intent.attempt = 1;
      intent.event = "intent";
      intent.time = time;
      c.services().store.write({stored, run, intent}, {});
    });
    c.settle();
  };
  begun_at(seen - 1, "spare01/write", stored.digest);
  CHECK(c.observed("spare01").facts.has_value());
  begun_at(seen + 1, "spare01/image", stored.digest);
  CHECK(c.observed("spare01").facts.has_value());
  SECTION("as its plan says") { begun_at(seen + 1, "spare01/write", stored.digest); }
  SECTION("as a plan that cannot be read may say") { begun_at(seen + 1, "spare01/boot", "sha256:x"); }
  CHECK_FALSE(c.observed("spare01").facts.has_value());
  CHECK(c.observed("spare01").machine.has_value());  // its processors are what they were
}
