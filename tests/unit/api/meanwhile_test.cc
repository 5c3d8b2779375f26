// Plans are made on a worker: what happens to a request when the world goes on meanwhile.
#include "tests/source_dir.h"
#include "tests/unit/api/controller.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using api::Listener;
using testing::Controller;

namespace {

struct Cluster : Controller {
  Cluster() : Controller(source_dir() + "/playbooks", "/bin/true") {
    std::string spec = testing::kSpec;
    const std::string books = "[ base, storage, shared ]";
    spec.replace(spec.find(books), books.size(), "[ base ]");
    REQUIRE(call(Listener::local, "PUT", "/v1/spec", spec).status == 200);
  }
  Json get(const std::string& target) { return good(call(Listener::local, "GET", target)); }
  std::string adoption(const std::string& digest = "") {
    const Json host = {{"name", "spare01"},
                       {"like", "node03"},
                       {"host", "10.20.0.31"},
                       {"host_key", "SHA256:" + std::string(43, 'A')},
                       {"facts", to_json(*testing::seen_in_ram("31").facts)}};
    return Json{{"hosts", {host}}, {"digest", digest}}.dump();
  }
  // While it is called, requested plans wait.
  HttpResponse while_planned(const std::string& target, const std::string& body,
                             const std::function<void()>& meanwhile) {
    std::promise<void> release;
    hold_workers(release.get_future().share());
    const auto sent = send(Listener::local, "POST", target, body);
    meanwhile();
    release.set_value();
    REQUIRE(sent->answer.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
    return sent->answer.get();
  }
  void remark() {
    const std::string text = get("/v1/spec")["text"].get<std::string>();
    REQUIRE(call(Listener::local, "PUT", "/v1/spec", "# later\n" + text).status == 200);
  }
};

bool says(const HttpResponse& answer, const std::string& words) {
  return answer.body.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("while a plan is made everybody else is answered", "[api][meanwhile]") {
  Cluster c;
  const auto planned = c.while_planned("/v1/plan", R"({"nodes": ["node01"]})", [&] {
    CHECK(c.get("/v1/status")["nodes"].size() == 3);
    CHECK(c.get("/v1/nodes/node01")["name"] == "node01");
    CHECK(c.get("/v1/runs")["runs"].empty());
  });
  CHECK(c.good(planned)["kind"] == "discover");
}

TEST_CASE("a plan is of the world as it was when it was requested, and no approval of it counts after that",
          "[api][meanwhile]") {
  Cluster c;
  const Json planned = c.good(c.while_planned("/v1/plan", R"({"nodes": ["node01"]})", [&] { c.remark(); }));
  CHECK(planned["plan"]["spec_revision"] == 1);
  const std::string digest = planned["digest"].get<std::string>();
  const auto refused = c.call(Listener::local, "POST", "/v1/plans/" + digest + "/approve", "{}");
  CHECK(refused.status == 409);
  CHECK(says(refused, "spec: revision 2 is now stored"));
  CHECK(c.get("/v1/runs")["runs"].empty());
}

TEST_CASE("a spec that is stored while an approved adoption is planned makes the approval worthless",
          "[api][meanwhile]") {
  Cluster c;
  const std::string digest =
      c.good(c.call(Listener::local, "POST", "/v1/nodes/adopt", c.adoption()))["digest"].get<std::string>();
  const auto refused = c.while_planned("/v1/nodes/adopt", c.adoption(digest), [&] { c.remark(); });
  CHECK(refused.status == 409);
  CHECK(says(refused, "spec: revision"));
  const std::string text = c.get("/v1/spec")["text"].get<std::string>();
  CHECK(text.find("# later") != std::string::npos);
  CHECK(text.find("spare01") == std::string::npos);
  // Nothing changes: it is carried out.
  const std::string again =
      c.good(c.call(Listener::local, "POST", "/v1/nodes/adopt", c.adoption()))["digest"].get<std::string>();
  CHECK(c.good(c.while_planned("/v1/nodes/adopt", c.adoption(again), [] {}))["tokens"].contains("spare01"));
}

TEST_CASE("a run that begins while an approved adoption is planned comes first", "[api][meanwhile]") {
  Cluster c;
  const std::string digest =
      c.good(c.call(Listener::local, "POST", "/v1/nodes/adopt", c.adoption()))["digest"].get<std::string>();
  const auto refused =
      c.while_planned("/v1/nodes/adopt", c.adoption(digest), [&] { c.start_a_run("node01"); });
  CHECK(refused.status == 409);
  CHECK(says(refused, "is under way"));
  CHECK(c.get("/v1/spec")["revision"] == 1);
}

TEST_CASE("what a re-image depends on is looked up before its turn comes, or it is not planned",
          "[api][meanwhile]") {
  Cluster c;
  std::unique_ptr<Controller::Sent> second;
  c.while_planned("/v1/plan", R"({"nodes": ["node01"]})", [&] {
    second = c.send(Listener::local, "POST", "/v1/plan", R"({"kind": "reimage", "nodes": ["node02"]})");
    c.on_reactor([&] {
      c.services().bringup.executor().set_node("node02", [](NodeRow& row) { row.accepted_run = 4; });
    });
  });
  REQUIRE(second->answer.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
  const auto refused = second->answer.get();
  CHECK(refused.status == 409);
  CHECK(says(refused, "run 4 has accepted node02 in the meantime: plan again"));
}

TEST_CASE("what is stored of runs is read and rendered while everybody else is answered",
          "[api][meanwhile]") {
  Cluster c;
  const std::string digest =
      c.good(c.call(Listener::local, "POST", "/v1/plan", R"({"nodes": ["node01"]})"))["digest"]
          .get<std::string>();
  c.start_a_run("node01");
  while (c.get("/v1/runs/1")["actions"][0]["state"] == "fresh") {
  }  // then nothing changes: no agent comes
  std::promise<void> release;
  c.hold_workers(release.get_future().share());
  std::vector<std::unique_ptr<Controller::Sent>> sent;
  for (const std::string& target :
       {"/v1/plans/" + digest, std::string("/v1/runs/1"), std::string("/v1/runs/0"),
        std::string("/v1/report?format=text"), std::string("/v1/report?run=1")})
    sent.push_back(c.send(Listener::local, "GET", target));
  CHECK(c.get("/v1/status")["run"]["id"] == 1);
  for (const auto& one : sent)
    CHECK(one->answer.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
  release.set_value();
  std::vector<HttpResponse> answers;
  for (const auto& one : sent) {
    REQUIRE(one->answer.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
    answers.push_back(one->answer.get());
  }
  CHECK(c.good(answers[0])["plan"]["nodes"] == Json{"node01"});
  CHECK(c.good(answers[1])["nodes"][0]["result"] == "unfinished");
  CHECK(answers[2].body == answers[1].body);
  CHECK(says(answers[3], "node01"));
  CHECK(c.good(answers[4])["run"] == 1);
}

TEST_CASE("more requests for stored runs than can be answered soon are refused", "[api][meanwhile]") {
  Cluster c;
  c.start_a_run("node01");
  std::promise<void> release;
  c.hold_workers(release.get_future().share());
  std::vector<std::unique_ptr<Controller::Sent>> sent;
  for (int i = 0; i < 18; ++i) sent.push_back(c.send(Listener::local, "GET", "/v1/runs/1"));
  REQUIRE(sent.back()->answer.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
  CHECK(sent.back()->answer.get().status == 503);
  sent.pop_back();
  CHECK(c.call(Listener::local, "GET", "/v1/report?format=pdf").status ==
        422);  // needs nothing that is stored
  release.set_value();
  for (const auto& one : sent) {
    REQUIRE(one->answer.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
    CHECK(one->answer.get().status == 200);
  }
}

TEST_CASE("what is not stored is not found", "[api][meanwhile]") {
  Cluster c;
  for (const char* target :
       {"/v1/plans/1234567890", "/v1/runs/1", "/v1/runs/0", "/v1/report", "/v1/report?run=7"})
    CHECK(c.call(Listener::local, "GET", target).status == 404);
}

TEST_CASE("a controller that ends while a plan is made does not answer, and ends", "[api][meanwhile]") {
  Cluster c;
  std::promise<void> release;
  c.hold_workers(release.get_future().share());
  const auto sent = c.send(Listener::local, "POST", "/v1/plan", R"({"nodes": ["node01"]})");
  c.restart([&] { release.set_value(); });
  CHECK(sent->answer.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
  CHECK(c.get("/v1/status")["nodes"].size() == 3);
}
