// The controller's side of adopting a host: a plan from what was found, then, once it is approved, a declared
// node and one token.
#include "base/wire.h"
#include "sys/pki.h"
#include "tests/source_dir.h"
#include "tests/unit/api/controller.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using api::Listener;
using testing::Controller;

namespace {

const std::string kKey = "SHA256:" + std::string(43, 'A');

HardwareFacts found(const std::string& number = "31") {
  HardwareFacts facts = *testing::seen_in_ram(number).facts;
  facts.system.uuid = "uuid-" + number;
  facts.system.serial = "SN" + number;
  return facts;
}

struct Cluster : Controller {
  Cluster() : Controller(source_dir() + "/playbooks", "/bin/true") {
    std::string spec = testing::kSpec;
    const std::string books = "[ base, storage, shared ]";
    spec.replace(spec.find(books), books.size(), "[ base ]");
    REQUIRE(call(Listener::local, "PUT", "/v1/spec", spec).status == 200);
  }
  HttpResponse adopt(Json change = Json::object()) {
    Json host = {{"name", "spare01"}, {"like", "node03"}, {"host", "10.20.0.31"},
                 {"port", 22},        {"user", "root"},   {"host_key", kKey},
                 {"address", ""},     {"joined", false},  {"facts", to_json(found())}};
    const std::string digest = change.value("digest", "");
    change.erase("digest");
    host.update(change);
    return adopt_all({host}, digest);
  }
  HttpResponse adopt_all(const std::vector<Json>& hosts, const std::string& digest = "") {
    const Json request = {{"hosts", hosts}, {"digest", digest}};
    return call(Listener::local, "POST", "/v1/nodes/adopt", request.dump());
  }
  HttpResponse join(const std::string& token, const std::string& key, wire::Mode mode = wire::Mode::adopted) {
    wire::JoinRequest join;
    join.node = "spare01";
    join.token = token;
    join.csr_pem = pki::make_csr(key, join.node).value();
    join.boot_id = "boot-31";
    join.mode = mode;
    join.product_uuid = "uuid-31";
    return call(Listener::tls, "POST", "/agent/v1/join", wire::to_json(join).dump());
  }
};

bool says(const HttpResponse& answer, const std::string& words) {
  return answer.body.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("a host is planned without anything being stored, and declared when that plan is approved",
          "[api][adopt]") {
  Cluster c;
  const Json planned = c.good(c.adopt());
  CHECK(planned["kind"] == "adopt");
  CHECK(planned["declared"] == false);
  CHECK(planned["online"].empty());
  CHECK(planned["revision"] == 2);
  CHECK(planned["diff"].get<std::string>().find("+    adopt: { host: \"10.20.0.31\", host_key:") !=
        std::string::npos);
  CHECK(planned["text"].get<std::string>().find("OS31") ==
        std::string::npos);  // its system's disk is not in question
  CHECK(c.good(c.adopt())["digest"] ==
        planned["digest"]);  // looking once more changes nothing about what is approved
  CHECK(c.get("/v1/spec")["revision"] == 1);
  CHECK(c.call(Listener::local, "GET", "/v1/nodes/spare01").status == 404);
  CHECK(c.get("/v1/nodes/spare01/adopt")["declared"] == false);

  const std::string digest = planned["digest"].get<std::string>();
  const Json ticket = c.good(c.adopt({{"digest", digest}}));
  CHECK(ticket["url"] == "https://10.20.0.1:7443");
  CHECK(ticket["pin"] == c.get("/v1/nodes/spare01/adopt")["pin"]);
  CHECK(c.get("/v1/spec")["revision"] == 2);
  const Json declared = c.get("/v1/nodes/spare01/adopt");
  CHECK(declared["adopt"]["host_key"] == kKey);
  CHECK(declared["adopt"]["address"] == "10.20.0.31");
  CHECK(c.get("/v1/nodes/spare01")["adopted"]["host"] == "10.20.0.31");
  CHECK(c.get("/v1/nodes/spare01")["product_uuid"] == "uuid-31");

  REQUIRE(c.join(ticket["tokens"]["spare01"].get<std::string>(), pki::make_key().value()).status == 200);
  const Json again =
      c.good(c.call(Listener::local, "POST", "/v1/plan", R"({"kind": "adopt", "nodes": ["spare01"]})"));
  CHECK(again["digest"] == digest);  // what was approved is what runs
}

TEST_CASE("an adoption that was cut off goes on with the same command", "[api][adopt]") {
  Cluster c;
  const std::string digest = c.good(c.adopt())["digest"].get<std::string>();
  const Json first = c.good(c.adopt({{"digest", digest}}));
  // The reply was lost. The node is declared by now, so --like is not given.
  const Json planned = c.good(c.adopt({{"like", ""}}));
  CHECK(planned["declared"] == true);
  CHECK(planned["diff"] == "");
  CHECK(planned["digest"] == digest);
  const Json second = c.good(c.adopt({{"like", ""}, {"digest", digest}}));
  CHECK(c.get("/v1/spec")["revision"] == 2);
  CHECK(second["tokens"]["spare01"] != first["tokens"]["spare01"]);
  const std::string key = pki::make_key().value();
  CHECK(says(c.join(first["tokens"]["spare01"].get<std::string>(), key), "newer token"));
  CHECK(says(c.join(second["tokens"]["spare01"].get<std::string>(), key, wire::Mode::ram), "running host"));
  CHECK(c.join(second["tokens"]["spare01"].get<std::string>(), key).status == 200);
  CHECK(c.join(second["tokens"]["spare01"].get<std::string>(), key).status ==
        200);  // the reply to the host was lost: the same key gets the same answer
  CHECK(c.join(second["tokens"]["spare01"].get<std::string>(), pki::make_key().value()).status == 403);
  // The host lost its key before it wrote it down: one more token, one more key.
  const Json third = c.good(c.adopt({{"like", ""}, {"digest", digest}}));
  CHECK(c.join(third["tokens"]["spare01"].get<std::string>(), pki::make_key().value()).status == 200);
}

TEST_CASE(
    "a spec stored between look and approval makes the approval worthless, and neither overwrites the other",
    "[api][adopt]") {
  Cluster c;
  const std::string digest = c.good(c.adopt())["digest"].get<std::string>();
  const std::string text = c.get("/v1/spec")["text"].get<std::string>();
  REQUIRE(c.call(Listener::local, "PUT", "/v1/spec", text + "# later\n").status == 200);
  CHECK(c.adopt({{"digest", digest}}).status == 409);
  const Json planned = c.good(c.adopt());
  c.good(c.adopt({{"digest", planned["digest"]}}));
  const Json newest = c.get("/v1/spec");
  CHECK(newest["revision"] == planned["revision"]);
  CHECK(newest["text"].get<std::string>().find("# later") != std::string::npos);
  CHECK(c.get("/v1/spec?rev=1")["text"] == text);
}

TEST_CASE("what the host shows must be what the spec says of it", "[api][adopt]") {
  Cluster c;
  const std::string digest = c.good(c.adopt())["digest"].get<std::string>();
  c.good(c.adopt({{"digest", digest}}));
  const auto expect = [&](const Json& change, int status, const std::string& words) {
    const auto answer = c.adopt(change);
    CAPTURE(answer.body);
    CHECK(answer.status == status);
    CHECK(says(answer, words));
  };
  expect({{"host_key", "SHA256:" + std::string(43, 'B')}}, 403, "pins the host key " + kKey);
  expect({{"host", "10.20.0.32"}}, 422, "root@10.20.0.31:22");
  expect({{"user", "admin"}}, 422, "root@10.20.0.31:22");
  expect({{"address", "10.20.0.40"}}, 422, "10.20.0.31");
  expect({{"name", "node02"}}, 422, "declares node02 as a node that muster installs");
  HardwareFacts other = found();
  other.system.uuid = "uuid-other";
  expect({{"facts", to_json(other)}}, 403, "node-swapped");
}

TEST_CASE("an adoption that cannot work says why and stores nothing", "[api][adopt]") {
  Cluster c;
  const auto expect = [&](const Json& change, int status, const std::string& words) {
    const auto answer = c.adopt(change);
    CAPTURE(answer.body);
    CHECK(answer.status == status);
    CHECK(says(answer, words));
  };
  expect({{"like", ""}}, 422, "--like");
  expect({{"like", "node3"}}, 422, "did you mean 'node03'");
  expect({{"host", "192.168.1.1"}}, 422, "provisioning network");
  expect({{"host_key", "MD5:aa"}}, 422, "ssh-keygen -lf");
  expect({{"name", "aardvark"}}, 422, "lead node");
  expect({{"digest", "sha256:" + std::string(64, '0')}}, 409, "cluster changed");
  expect({{"surprise", 1}}, 422, "surprise");
  HardwareFacts few = found();
  few.disks.resize(2);
  expect({{"facts", to_json(few)}}, 403, "disk-count");
  HardwareFacts foreign = found();
  foreign.disks[1].blank = false;
  foreign.disks[1].content = "ext4 label=FAMILY";
  expect({{"facts", to_json(foreign)}}, 403, "disk-foreign");
  HardwareFacts evil = found();
  evil.disks[1].model = "secret:bmc";
  CHECK(c.adopt({{"facts", to_json(evil)}}).status >= 400);
  const std::string digest = c.good(c.adopt())["digest"].get<std::string>();
  c.start_a_run("node01");
  expect({{"digest", digest}}, 409, "is under way");
  CHECK(c.get("/v1/spec")["revision"] == 1);
  CHECK(c.call(Listener::local, "GET", "/v1/nodes/spare01").status == 404);
}

TEST_CASE("only operators adopt, and only they get the agent program that way", "[api][adopt]") {
  Cluster c;
  for (const auto& [method, path] : std::vector<std::pair<std::string, std::string>>{
           {"POST", "/v1/nodes/adopt"}, {"GET", "/v1/nodes/spare01/adopt"}, {"GET", "/v1/agent"}}) {
    CHECK(c.call(Listener::tls, method, path, "{}").status == 401);
    CHECK(c.call(Listener::boot, method, path, "{}").status >= 400);
  }
  CHECK(c.call(Listener::local, "GET", "/v1/agent").file != "");
}

TEST_CASE("an adopted node needs no image, power or RAM system from the controller", "[api][adopt]") {
  Cluster c;
  const std::string digest = c.good(c.adopt())["digest"].get<std::string>();
  c.good(c.adopt({{"digest", digest}}));
  CHECK(c.call(Listener::local, "POST", "/v1/plan", R"({"kind": "reimage", "nodes": ["spare01"]})").status ==
        403);
  const auto power = c.call(Listener::local, "POST", "/v1/power/spare01/off");
  CHECK(power.status == 422);
  CHECK(says(power, "without power"));
  const Json images = c.get("/v1/images");
  for (const auto& image : images["images"]) CHECK(image["name"] != "");
}

TEST_CASE("several hosts are one plan, one revision of the spec and a token each", "[api][adopt]") {
  Cluster c;
  const auto host = [](const std::string& number) {
    return Json{{"name", "spare" + number},
                {"like", "node03"},
                {"host", "10.20.0." + number},
                {"host_key", kKey},
                {"facts", to_json(found(number))}};
  };
  const Json before = c.get("/v1/spec");
  const std::vector<Json> three = {host("31"), host("32"), host("33")};
  const Json planned = c.good(c.adopt_all(three));
  CHECK(planned["plan"]["nodes"].size() >= 3);
  for (const char* name : {"spare31", "spare32", "spare33"})
    CHECK(planned["diff"].get<std::string>().find(std::string("+  - name: ") + name) != std::string::npos);
  CHECK(c.get("/v1/spec") == before);
  CHECK(c.adopt_all({host("31"), host("32")}, planned["digest"].get<std::string>()).status ==
        409);  // another plan
  const Json ticket = c.good(c.adopt_all(three, planned["digest"].get<std::string>()));
  REQUIRE(ticket["tokens"].size() == 3);
  CHECK(ticket["tokens"]["spare31"] != ticket["tokens"]["spare32"]);
  CHECK(c.get("/v1/spec")["revision"] == before["revision"].get<int64_t>() + 1);
  // Declared now: the same command plans the same, and changes no spec.
  const Json again = c.good(c.adopt_all(three));
  CHECK(again["declared"] == true);
  CHECK(again["digest"] == planned["digest"]);

  // One host under two names is none.
  Json same_place = host("35"), same_machine = host("35");
  same_place["host"] = "10.20.0.34";
  same_machine["facts"] = host("34")["facts"];
  for (const auto& [other, words] : {std::pair<Json, std::string>{host("34"), "listed twice"},
                                     {same_place, "are the same host"},
                                     {same_machine, "are the same host"}}) {
    const auto answer = c.adopt_all({host("34"), other});
    CHECK(answer.status == 422);
    CHECK(says(answer, words));
  }
  CHECK(c.adopt_all({}).status == 422);
  // Only the wrong one is reported, and no host is adopted.
  Json odd = host("36");
  odd["like"] = "nobody";
  CHECK(c.adopt_all({host("34"), odd}).status == 422);
  CHECK(c.get("/v1/spec")["revision"] == before["revision"].get<int64_t>() + 1);
}
