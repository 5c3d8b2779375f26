// Replacing secrets through the API: who may, what is said before and after, and what a killed controller, a
// lost answer and a second request do to it.
#include <fstream>
#include <iterator>

#include "base/wire.h"
#include "controller/api/services.h"
#include "controller/bringup/current_causes.h"
#include "controller/executor/executor.h"
#include "controller/executor/node_changes.h"
#include "controller/link/link_hub.h"
#include "controller/trust/vault.h"
#include "tests/source_dir.h"
#include "tests/unit/api/controller.h"

using namespace muster;
using api::Listener;
using testing::Controller;

namespace {

const char* const kSlurmSpec = R"(cluster: gaggle
network: { provisioning: { cidr: 10.20.0.0/24, dhcp: managed }, bmc: { cidr: 127.0.0.0/8 } }
images: { cpu: { recipe: debian-12 } }
roles: { cpu: { playbooks: [ base, scheduler ] }, store: { playbooks: [ base ] } }
nodes:
  - { name: node01, role: cpu, power: { driver: redfish, address: 127.0.0.2, secret: bmc },
      mac: "52:54:00:20:00:01", image: cpu, disks: { os: { match: { serial: "OS*", count: 1 } } } }
  - { name: node02, role: cpu, power: { driver: redfish, address: 127.0.0.3, secret: bmc },
      mac: "52:54:00:20:00:02", image: cpu, disks: { os: { match: { serial: "OS*", count: 1 } } } }
  - { name: node03, role: store, power: { driver: redfish, address: 127.0.0.4, secret: bmc },
      mac: "52:54:00:20:00:03", image: cpu, disks: { os: { match: { serial: "OS*", count: 1 } } } }
)";

struct Site : Controller {
  Site() : Controller(source_dir() + "/playbooks") {
    good(call(Listener::local, "PUT", "/v1/spec", kSlurmSpec));
    std::promise<bool> made;
    on_reactor([&] { services().vault.make_own_secrets([&](Status done) { made.set_value(done.ok()); }); });
    REQUIRE(made.get_future().get());
  }
  // Accepted earlier, and off now.
  void accepted(const std::string& node) {
    on_reactor([&] {
      services().executor.set_node(NodeName(node), [](NodeRow& row) {
        row.state = NodeState::accepted;
        row.mode = "installed";
        row.image_digest = "sha256:i";
        row.config_digest = "sha256:c";
      });
    });
    settle();
  }
  // Its agent polls, and trusts this.
  void reports(const std::string& node, const std::string& trusts = "sha256:none") {
    on_reactor([&] {
      services().executor.on_hello({NodeName(node), wire::Mode::installed, "boot", "sha256:i"});
      Presence present{"boot", wire::Mode::installed};
      present.trusts = trusts;
      services().link.poll(
          NodeName(node), {}, [](const wire::PollReply&) {}, present);
    });
    settle();
  }
  std::string trust() {
    std::string out;
    on_reactor([&] { out = services().authority.trust(); });
    return out;
  }
  std::string secret(const std::string& name) {
    std::string out;
    on_reactor([&] { out = services().vault.get(name).value_or(""); });
    return out;
  }
  Json look(const std::string& what) { return good(call(Listener::local, "GET", "/v1/replace/" + what)); }
  // The step that was shown.
  HttpResponse act(const std::string& what, const Json& shown) {
    return call(Listener::local, "POST", "/v1/replace/" + what,
                Json{{"id", shown["id"]}, {"step", shown["step"]}}.dump());
  }
  Json replace(const std::string& what) { return good(act(what, look(what))); }
};

std::vector<std::string> left_of(const Json& state) {
  std::vector<std::string> out;
  for (const Json& one : state["left"]) out.push_back(one["node"].get<std::string>());
  return out;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("what is replaced gets another id, and the request for the earlier one does nothing", "[replace]") {
  Site c;
  const std::string what = GENERATE(as<std::string>(), "token", "master-key", "munge-key");
  CAPTURE(what);
  const Json shown = c.look(what);
  CHECK_FALSE(shown["effects"].empty());
  CHECK(shown["since"].get<int64_t>() > 0);
  const Json after = c.good(c.act(what, shown));
  CHECK(after["id"] != shown["id"]);
  // The answer was lost, and the request is repeated.
  CHECK(c.act(what, shown).status == 409);
  CHECK(c.look(what)["id"] == after["id"]);
  c.restart();
  CHECK(c.look(what)["id"] == after["id"]);
  CHECK(c.replace(what)["id"] != after["id"]);
}

TEST_CASE("nothing is replaced with the operator's token, which may be the one that leaked", "[replace]") {
  Site c;
  for (const std::string what : {"token", "master-key", "munge-key", "ca"}) {
    CAPTURE(what);
    const Json shown = c.look(what);
    HttpRequest request;
    request.method = "POST";
    request.target = "/v1/replace/" + what;
    request.body = Json{{"id", shown["id"]}, {"step", shown["step"]}}.dump();
    request.headers["Authorization"] = "Bearer " + c.services().authority.operator_token();
    CHECK(c.call(Listener::tls, request).status == 403);
    CHECK(c.look(what)["id"] == shown["id"]);
  }
}

TEST_CASE("a request to replace that is wrong is refused", "[replace]") {
  Site c;
  CHECK(c.call(Listener::local, "GET", "/v1/replace/bmc").status == 404);
  CHECK(c.call(Listener::local, "POST", "/v1/replace/bmc", "{}").status == 404);
  for (const std::string body : {"", "[]", "{}", R"({"id": 1, "step": "replace"})", R"({"id": "x"})",
                                 R"({"id": "x", "step": "replace", "more": 1})"})
    CHECK(c.call(Listener::local, "POST", "/v1/replace/token", body).status == 422);
  CHECK(c.call(Listener::local, "POST", "/v1/replace/token", R"({"id": "x", "step": "replace"})").status ==
        409);
  CHECK(c.call(Listener::local, "GET", "/v1/replace/ca?without=gpu99").status == 404);
}

TEST_CASE("the old operator token is refused at once", "[replace]") {
  Site c;
  HttpRequest request;
  request.target = "/v1/version";
  request.headers["Authorization"] = "Bearer " + c.services().authority.operator_token();
  REQUIRE(c.call(Listener::tls, request).status == 200);
  c.replace("token");
  CHECK(c.call(Listener::tls, request).status == 401);
  std::ifstream file(c.state() + "/operator-token");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  request.headers["Authorization"] = "Bearer " + text;
  CHECK(c.call(Listener::tls, request).status == 200);
}

TEST_CASE("secrets open with the replaced master key, also after a restart", "[replace]") {
  Site c;
  REQUIRE(c.call(Listener::local, "PUT", "/v1/secrets/bmc", "admin:hunter2").status == 200);
  c.replace("master-key");
  CHECK(c.secret("bmc") == "admin:hunter2");
  c.restart();
  CHECK(c.secret("bmc") == "admin:hunter2");
}

TEST_CASE("a new munge key is due on each node that has Slurm, until it is configured", "[replace]") {
  Site c;
  for (const char* node : {"node01", "node02", "node03"}) c.accepted(node);
  c.reports("node01");
  c.reports("node03");
  CHECK(c.look("munge-key")["step"] == "replace");
  CHECK(left_of(c.look("munge-key")).empty());
  const std::string before = c.secret("munge-key");
  const Json after = c.replace("munge-key");
  CHECK(c.secret("munge-key") != before);
  CHECK(c.secret("munge-key").size() == before.size());
  CHECK(after["step"] == "apply");
  CHECK(left_of(after) == Names{"node01", "node02"});
  CHECK(after["apply"] == Json(Names{"node01"}));  // the other one does not report
  // Repeated meanwhile, it goes on with this key.
  const std::string key = c.secret("munge-key");
  CHECK(c.replace("munge-key")["step"] == "apply");
  CHECK(c.secret("munge-key") == key);
  c.restart();
  CHECK(c.secret("munge-key") == key);
  CHECK(left_of(c.look("munge-key")) == Names{"node01", "node02"});
  // The plan's run has configured and accepted it.
  c.on_reactor([&] {
    c.services().executor.set_node("node01", [](NodeRow& row) { row.config_digest = "sha256:c"; });
  });
  CHECK(left_of(c.look("munge-key")) == Names{"node02"});
  CHECK(c.look("munge-key")["step"] == "replace");
}

TEST_CASE("no munge key is replaced while a run may bring the present one", "[replace]") {
  Site c;
  c.start_a_run("node03");
  const std::string before = c.secret("munge-key");
  CHECK(c.act("munge-key", c.look("munge-key")).status == 409);
  CHECK(c.secret("munge-key") == before);
}

TEST_CASE("a CA is withdrawn when all nodes have moved, and not before", "[replace]") {
  Site c;
  for (const char* node : {"node01", "node02"}) c.accepted(node);
  const std::string old = c.trust();
  c.reports("node01", old);
  const Json first = c.look("ca");
  CHECK(first["step"] == "begin");
  const Json begun = c.good(c.act("ca", first));
  CHECK(begun["id"] == first["id"]);
  CHECK(begun["step"] == "wait");
  CHECK(left_of(begun) == Names{"node01", "node02"});
  CHECK(begun["left"][0]["moves"] == true);
  CHECK(begun["left"][1]["moves"] == false);  // it is off
  CHECK(c.act("ca", first).status == 409);    // the answer was lost
  CHECK(c.act("ca", begun).status == 409);    // there is nothing to do but wait

  c.reports("node01", "incomplete");
  CHECK(left_of(c.look("ca")) == Names{"node01", "node02"});
  c.reports("node01", c.trust());
  CHECK(left_of(c.look("ca")) == Names{"node02"});
  CHECK(c.look("ca")["step"] == "wait");
  SECTION("the last one moves, too") {
    c.reports("node02", c.trust());
    CHECK(c.look("ca")["step"] == "withdraw");
    const Json after = c.replace("ca");
    CHECK(after["id"] != first["id"]);
    // Until they have renewed once more, agents trust what leaked.
    CHECK(after["step"] == "wait");
    CHECK(left_of(after) == Names{"node01", "node02"});
    for (const char* node : {"node01", "node02"}) c.reports(node, c.trust());
    CHECK(c.look("ca")["step"] == "begin");
    CHECK(left_of(c.look("ca")).empty());
  }
  SECTION("it is left out by name") {
    const Json shown = c.look("ca?without=node02");
    CHECK(shown["step"] == "withdraw");
    CHECK(c.act("ca", shown).status == 409);  // without the name
    CHECK(c.good(c.act("ca?without=node02", shown))["id"] != first["id"]);
    c.reports("node01", c.trust());
    CHECK(left_of(c.look("ca")) == Names{"node02"});
  }
  SECTION("not while a run is active: its machines boot with the digest of the old CA") {
    c.start_a_run("node03");
    CHECK(c.act("ca?without=node02", c.look("ca?without=node02")).status == 409);
    CHECK(c.look("ca")["id"] == first["id"]);
  }
  SECTION("the controller is killed in between") {
    c.restart();
    CHECK(c.look("ca")["step"] == "wait");
    CHECK(left_of(c.look("ca")) == Names{"node01", "node02"});  // neither has reported to it
    for (const char* node : {"node01", "node02"}) c.reports(node, c.trust());
    CHECK(c.replace("ca")["id"] != first["id"]);
    c.restart();
    CHECK(c.trust() != old);
    CHECK(c.look("ca")["id"] != first["id"]);
  }
  SECTION("its agent cannot: it is of an earlier version") {
    c.reports("node02", "");
    const Json now = c.look("ca");
    CHECK(left_of(now) == Names{"node02"});
    CHECK(now["left"][0]["moves"] == false);
  }
}

TEST_CASE("a CA that is half replaced is a cause, with the command that goes on", "[replace]") {
  Site c;
  const auto says_so = [&] {
    const Json status = c.get("/v1/status");
    for (const Json& cause : status["causes"])
      if (cause["next"] == "muster replace ca") return cause["kind"] == "controller";
    return false;
  };
  CHECK_FALSE(says_so());
  c.replace("ca");
  CHECK(says_so());
  c.restart();
  CHECK(says_so());
  c.replace("ca");  // no node has an agent
  CHECK_FALSE(says_so());
}

TEST_CASE("an agent renews early when the CAs that it is to trust have changed, once", "[replace]") {
  Site c;
  const std::string key = pki::make_key().value(), csr = pki::make_csr(key, "node01").value();
  wire::JoinRequest join;
  join.node = "node01";
  join.token = c.token_for("node01");
  join.csr_pem = csr;
  join.boot_id = "b";
  const auto joined = c.good(c.call(Listener::tls, "POST", "/agent/v1/join", wire::to_json(join).dump()));
  const auto own = pki::read_certificate(joined["certificate"].get<std::string>()).value();
  auto own_now = own;
  const auto renew = [&](const std::string& query, const std::string& request = "") {
    return c.call(Listener::tls,
                  Controller::signed_by(own_now, "POST", "/agent/v1/renew" + query,
                                        Json{{"csr_pem", request.empty() ? csr : request}}.dump()));
  };
  CHECK(renew("").status == 409);
  CHECK(renew("?ca=" + c.trust()).status == 409);
  CHECK(renew("?ca=x").status == 409);  // what it says changes nothing while no CA is replaced
  const std::string before = c.trust();
  c.replace("ca");
  CHECK(renew("").status == 409);
  const auto renewed = c.good(renew("?ca=" + before));
  CHECK(pki::certificate_fingerprints(renewed["ca"].get<std::string>())->size() == 2);
  CHECK(c.good(renew("?ca=" + before)) == renewed);  // the reply was lost
  CHECK(renew("?ca=" + before, pki::make_csr(pki::make_key().value(), "node01").value()).status == 409);
  own_now = pki::read_certificate(renewed["certificate"].get<std::string>()).value();
  CHECK(renew("?ca=" + before).status == 409);
  CHECK(renew("?ca=incomplete").status == 409);

  // Who joins in between gets both, too, the pinned one first, and nothing of the old CA.
  join.node = "node02";
  join.token = c.token_for("node02");
  const auto late = c.good(c.call(Listener::tls, "POST", "/agent/v1/join", wire::to_json(join).dump()));
  CHECK(late["ca"] == renewed["ca"]);
  CHECK(pki::certificate_fingerprint(late["ca"].get<std::string>()).value() ==
        c.services().authority.ca_fingerprint());
  CHECK_FALSE(pki::verify_certificate(joined["ca"].get<std::string>(), late["certificate"].get<std::string>(),
                                      own.not_before + kDay)
                  .ok());

  // What it gets when its request for orders is answered.
  const auto renews = [&](const std::string& trusts) {
    HttpRequest request =
        Controller::signed_by(own, "GET", "/agent/v1/orders?boot=b&mode=installed&ca=" + trusts);
    REQUIRE(parse_target(request).ok());
    std::promise<HttpResponse> promise;
    auto answer = promise.get_future();
    c.on_reactor([&] {
      api::dispatch(c.services(), Listener::tls, request, std::make_shared<testing::Caught>(promise), {});
      c.services().link.hang_up("node01");
    });
    REQUIRE(answer.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
    return wire::poll_reply_from_json(parse_json(answer.get().body).value())->renew;
  };
  CHECK(renews(before));
  CHECK(renews("incomplete"));
  CHECK_FALSE(renews(c.trust()));
  CHECK_FALSE(renews(""));
}
