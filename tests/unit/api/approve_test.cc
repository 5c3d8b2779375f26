// An approval is for one plan, in the world it was made in, and for one run.
#include "controller/plan/planner.h"
#include "tests/source_dir.h"
#include "tests/unit/api/controller.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using api::Listener;
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
    REQUIRE(call(Listener::local, "PUT", "/v1/spec", spec).status == 200);
    HardwareFacts facts = *testing::seen_in_ram("31").facts;
    const Json host = {{"name", "spare01"}, {"like", "node03"}, {"host", "10.20.0.31"},
                       {"port", 22},        {"user", "root"},   {"host_key", kKey},
                       {"address", ""},     {"joined", false},  {"facts", to_json(facts)}};
    Json request = {{"hosts", {host}}};
    request["digest"] = good(call(Listener::local, "POST", "/v1/nodes/adopt", request.dump()))["digest"];
    good(call(Listener::local, "POST", "/v1/nodes/adopt", request.dump()));
  }
  std::string plan() {
    return good(call(Listener::local, "POST", "/v1/plan",
                     R"({"kind": "adopt", "nodes": ["spare01"]})"))["digest"]
        .get<std::string>();
  }
  void plan_another() { good(call(Listener::local, "POST", "/v1/plan", R"({"nodes": ["node01"]})")); }
  HttpResponse approve(const std::string& digest) {
    return call(Listener::local, "POST", "/v1/plans/" + digest + "/approve", "{}");
  }
  size_t runs() { return good(call(Listener::local, "GET", "/v1/runs"))["runs"].size(); }
  std::string spec() { return good(call(Listener::local, "GET", "/v1/spec"))["text"].get<std::string>(); }
};

std::string code_of(const HttpResponse& answer) { return parse_json(answer.body).value().value("code", ""); }
std::string message_of(const HttpResponse& answer) {
  return parse_json(answer.body).value().value("message", "");
}

// Of a node that the plan is not about.
void another_configuration(NodeRow& row) { row.config_digest += "another"; }

void another_disk(NodeRow& row) {
  std::string text = row.facts.text();
  const auto at = text.find("FASTa31");
  REQUIRE(at != std::string::npos);
  row.facts = text.replace(at, 7, "FASTc31");
}

}  // namespace

TEST_CASE("an approval starts one run, and none after that", "[api][approve]") {
  Cluster c;
  const std::string digest = c.plan();
  CHECK(c.plan() == digest);  // looking again changes nothing about what is approved
  REQUIRE(c.approve(digest).status == 200);
  CHECK(c.approve(digest).status == 409);
  REQUIRE(c.call(Listener::local, "POST", "/v1/runs/1/cancel").status == 200);
  c.settle();
  const auto repeated = c.approve(digest);
  CHECK(repeated.status == 409);
  CHECK(code_of(repeated) == "conflict");
  CHECK(c.approve(digest.substr(0, 20)).status == 409);
  CHECK(c.runs() == 1);
  // The same work once more is another plan, which is not approved yet.
  const std::string again = c.plan();
  CHECK(again != digest);
  CHECK(c.approve(digest).status == 409);
  CHECK(c.runs() == 1);
  CHECK(c.approve(again).status == 200);
  CHECK(c.runs() == 2);
}

TEST_CASE("a brief answer has all of a plan but its actions, and is approved like any other",
          "[api][approve]") {
  Cluster c;
  const auto request = [&c](const char* target) {
    return c.good(c.call(Listener::local, "POST", target, R"({"kind": "adopt", "nodes": ["spare01"]})"));
  };
  Json whole = request("/v1/plan");
  const Json brief = request("/v1/plan?brief=1");
  REQUIRE(whole.contains("plan"));
  CHECK(whole["notes"] == whole["plan"]["notes"]);
  whole.erase("plan");
  CHECK(brief == whole);
  CHECK(c.approve(brief["digest"].get<std::string>()).status == 200);
}

TEST_CASE("a plan that boots an image that was never built is refused with the command that builds it",
          "[api][approve]") {
  Cluster c;
  const Json planned = c.good(c.call(Listener::local, "POST", "/v1/plan", R"({"nodes": ["node01"]})"));
  const auto refused = c.approve(planned["digest"].get<std::string>());
  CHECK(code_of(refused) == "invalid");
  CHECK(message_of(refused).find("muster image build cpu") != std::string::npos);
  CHECK(c.runs() == 0);
}

TEST_CASE("an approval used before a restart is used", "[api][approve]") {
  Cluster c;
  const std::string digest = c.plan();
  REQUIRE(c.approve(digest).status == 200);
  REQUIRE(c.call(Listener::local, "POST", "/v1/runs/1/cancel").status == 200);
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
    REQUIRE(c.call(Listener::local, "PUT", "/v1/spec", spec).status == 200);
    REQUIRE(c.plan() != digest);
  }
  SECTION("what was found in it is another disk") {
    c.on_reactor([&] { c.services().bringup.executor().set_node("spare01", another_disk); });
    REQUIRE(c.plan() != digest);
  }
  SECTION("an operator took the node out: no plan at all") {
    REQUIRE(c.call(Listener::local, "POST", "/v1/nodes/spare01/quarantine", "{}").status == 200);
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
  c.plan_another();  // so that this one has to be read again, which takes a moment
  std::promise<Result<int64_t>> answered;
  c.on_reactor([&] {
    c.services().bringup.approve(digest, "test",
                                 [&](Result<int64_t> run) { answered.set_value(std::move(run)); });
    c.services().bringup.executor().set_node("spare01", another_disk);
  });
  const auto run = answered.get_future().get();
  REQUIRE_FALSE(run.ok());
  CHECK(run.error().code == Code::conflict);
  c.settle();
  CHECK(c.runs() == 0);
}

TEST_CASE("an approval stands when what changed makes no other plan", "[api][approve]") {
  Cluster c;
  const std::string digest = c.plan();
  SECTION("another node is configured differently, which no pass of this plan reads") {
    c.on_reactor([&] { c.services().bringup.executor().set_node("node01", another_configuration); });
  }
  SECTION("an operator took another node out") {
    REQUIRE(c.call(Listener::local, "POST", "/v1/nodes/node01/quarantine", "{}").status == 200);
  }
  SECTION("and the plan has to be read again") {
    c.plan_another();
    c.on_reactor([&] { c.services().bringup.executor().set_node("node01", another_configuration); });
  }
  const auto approved = c.approve(digest);
  INFO(approved.body);
  CHECK(approved.status == 200);
  c.settle();
  CHECK(c.runs() == 1);
  REQUIRE(c.call(Listener::local, "POST", "/v1/runs/1/cancel").status == 200);
  c.settle();
  CHECK(c.approve(digest).status == 409);  // it counted once all the same
  CHECK(c.runs() == 1);
}

TEST_CASE("an approval stands when another node changes while the run is prepared, and names what does not",
          "[api][approve]") {
  Cluster c;
  const std::string digest = c.plan();
  const bool another_plan = GENERATE(false, true);
  c.plan_another();  // so that this one has to be read again, which takes a moment
  std::promise<Result<int64_t>> answered;
  c.on_reactor([&] {
    c.services().bringup.approve(digest, "test",
                                 [&](Result<int64_t> run) { answered.set_value(std::move(run)); });
    c.services().bringup.executor().set_node("node01", another_configuration);
    if (another_plan) c.services().bringup.executor().set_node("spare01", another_disk);
  });
  const auto run = answered.get_future().get();
  CHECK(run.ok() != another_plan);
  if (!run.ok()) {
    CHECK(run.error().code == Code::conflict);
    CHECK(run.error().message.find("node spare01: its inventory is different") != std::string::npos);
  }
  c.settle();
  CHECK(c.runs() == (another_plan ? 0u : 1u));
}

TEST_CASE("what was found on a node before its disks were written is not planned with", "[api][approve]") {
  Cluster c;
  REQUIRE(c.observed("spare01").facts.has_value());
  const auto written_at = [&](const std::string& slot, DurationMs after) {
    c.on_reactor([&] {
      c.services().bringup.executor().set_node(
          "spare01", [slot, after](NodeRow& row) { row.disk_written[slot] = row.facts_time + after; });
    });
  };
  written_at("", -1);
  CHECK(c.observed("spare01").facts.has_value());
  written_at("b", 1);
  REQUIRE(c.observed("spare01").facts.has_value());
  CHECK(c.observed("spare01").facts->boot.slots.at("b").stage == "writing");
  const std::string digest = c.plan();
  written_at("", 0);  // in the same millisecond: which came first is not known
  CHECK_FALSE(c.observed("spare01").facts.has_value());
  CHECK(c.observed("spare01").machine.has_value());  // its processors are what they were
  CHECK(c.approve(digest).status == 409);
}

TEST_CASE("a conflict says what is different, and what no plan depends on makes none", "[api][approve]") {
  Cluster c;
  const std::string digest = c.plan();
  SECTION("when it was looked at, and in which words") {
    c.on_reactor([&] {
      c.services().bringup.executor().set_node("spare01", [](NodeRow& row) {
        row.facts_time += kMinute;
        row.last_seen += kMinute;
        row.boot_id = "another";
        row.facts = "  " + row.facts.text() + "\n";
      });
    });
    CHECK(c.approve(digest).status == 200);
    return;
  }
  SECTION("an operator took it out") {
    REQUIRE(c.call(Listener::local, "POST", "/v1/nodes/spare01/quarantine", "{}").status == 200);
    const auto refused = c.approve(digest);
    CHECK(refused.status == 409);
    CHECK(message_of(refused).find("(node spare01: it is now quarantined, not ") != std::string::npos);
  }
  SECTION("another spec is stored") {
    REQUIRE(c.call(Listener::local, "PUT", "/v1/spec", "# a remark\n" + c.spec()).status == 200);
    const auto refused = c.approve(digest);
    CHECK(refused.status == 409);
    CHECK(message_of(refused).find("spec: revision 3 is now stored") != std::string::npos);
  }
  CHECK(c.runs() == 0);
}

TEST_CASE("while plans are made the controller answers, and each who asked gets the own plan",
          "[api][approve]") {
  Cluster c;
  std::promise<void> release, begun;
  std::promise<Result<MadePlanPtr>> first, second;
  c.on_reactor([&] {
    Bringup& bringup = c.services().bringup;
    bringup.plan_and_store(
        {RequestKind::adopt, {"spare01"}},
        [&](const MadePlan&) {
          begun.set_value();
          release.get_future().get();
          return std::string("shown");
        },
        [&](Result<MadePlanPtr> made) { first.set_value(std::move(made)); });
    bringup.plan_and_store({RequestKind::up, {"node01"}}, {},
                           [&](Result<MadePlanPtr> made) { second.set_value(std::move(made)); });
  });
  begun.get_future().get();
  CHECK(c.call(Listener::local, "GET", "/v1/status").status == 200);
  CHECK(c.call(Listener::local, "GET", "/v1/nodes/spare01").status == 200);
  release.set_value();
  const auto adopted = first.get_future().get(), looked = second.get_future().get();
  REQUIRE(adopted.ok());
  REQUIRE(looked.ok());
  CHECK((*adopted)->plan->kind == PlanKind::adopt);
  CHECK((*adopted)->shown == "shown");
  CHECK((*adopted)->digest == c.plan());
  CHECK((*looked)->plan->kind == PlanKind::discover);
  CHECK((*looked)->plan->nodes == std::vector<std::string>{"node01"});
  CHECK((*looked)->shown.empty());
}

TEST_CASE("a stored plan that is not the one that was approved is not carried out", "[api][approve]") {
  Cluster c;
  const std::string digest = c.plan();
  c.plan_another();  // the newest is at hand
  std::promise<void> written;
  c.on_reactor([&] {
    PlanRow row = c.services().store.plan(digest).value();
    const auto at = row.json.find("spare01/");
    REQUIRE(at != std::string::npos);
    row.json.replace(at, 8, "spare02/");
    c.services().store.write({row}, [&](Status) { written.set_value(); });
  });
  written.get_future().get();
  const auto refused = c.approve(digest);
  CHECK(refused.status == 500);
  CHECK(code_of(refused) == "corrupt");
  CHECK(c.runs() == 0);
}
