// An undeclared machine: what it may do, what is kept of it, and how it becomes a node.
#include <filesystem>
#include <fstream>

#include "base/digest.h"
#include "base/manifest.h"
#include "base/wire.h"
#include "controller/link/discovery.h"
#include "tests/source_dir.h"
#include "tests/unit/api/controller.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using api::Listener;
using testing::Controller;

namespace {

constexpr char kMac[] = "52:54:00:20:00:04";
const std::string kName = std::string("unknown-") + kMac;

// With an image that counts as built, so that plans can be made.
struct Cluster : Controller {
  Cluster() : Controller(source_dir() + "/playbooks") {
    std::string spec = testing::kSpec;
    const std::string books = "[ base, storage, shared ]";
    spec.replace(spec.find(books), books.size(), "[ base ]");
    REQUIRE(call(Listener::local, "PUT", "/v1/spec", spec).status == 200);
  }
  void build_image() {
    ImageManifest image;
    image.name = "cpu";
    image.os = "Debian";
    image.kernel = "6.1";
    image.frame_size = 4096;
    image.raw_size = 4096;
    image.frames = {{0, 0, 4096, 6, sha256("frame"), sha256("raw"), false}};
    image.files = {{"kernel", "vmlinuz", sha256("k"), 1}};
    image.digest = manifest_digest(image);
    const std::string images = state() + "/images/cpu/", hex = image.digest.substr(7);
    std::filesystem::create_directories(images + hex);
    std::ofstream(images + hex + "/manifest.json") << to_text(image);
    std::filesystem::create_directory_symlink(hex, images + "current");
  }
  void discovery_on() {
    on_reactor([&] { services().discovery.on(60 * kMinute); });
  }
  // Boots and joins as the RAM system's agent would.
  pki::CertificateInfo join(const std::string& mac = kMac) {
    std::string token;
    // The script cannot be had without an address of the controller's own, so its token is made here.
    std::promise<std::string> minted;
    on_reactor([&] {
      services().boot.script_for(mac, [&](Result<std::string> s) { minted.set_value(s.value_or("")); });
    });
    const std::string script = minted.get_future().get();
    const auto at = script.find("muster.token=");
    REQUIRE(at != std::string::npos);
    token = script.substr(at + 13, script.find(' ', at) - at - 13);
    wire::JoinRequest join;
    join.node = unknown_name(mac);
    join.token = token;
    join.csr_pem = pki::make_csr(pki::make_key().value(), join.node).value();
    join.boot_id = "boot-1";
    const auto joined = call(Listener::tls, "POST", "/agent/v1/join", wire::to_json(join).dump());
    REQUIRE(joined.status == 200);
    const auto reply = wire::join_reply_from_json(parse_json(joined.body).value()).value();
    return pki::read_certificate(reply.certificate_pem).value();
  }
  HttpResponse send(const pki::CertificateInfo& who, std::vector<wire::Event> events) {
    wire::EventBatch batch{"boot-1", "inc", {}};
    for (auto& event : events) {
      event.seq = ++seq_;
      batch.events.push_back(event);
    }
    return call(Listener::tls, signed_by(who, "POST", "/agent/v1/events", wire::to_json(batch).dump()));
  }
  std::unique_ptr<Sent> send_request(HttpRequest request) {
    return Controller::send(Listener::tls, std::move(request));
  }
  Json orders(const pki::CertificateInfo& who) {
    const auto answer = call(Listener::tls, signed_by(who, "GET", "/agent/v1/orders?boot=boot-1&have="));
    REQUIRE(answer.status == 200);
    return parse_json(answer.body).value()["orders"];
  }
  // The whole way of a machine up to its inventory.
  pki::CertificateInfo show_up(const Json& facts, const std::string& mac = kMac) {
    const auto who = join(mac);
    REQUIRE(send(who, {{0, 0, "", "hello", {{"mode", "ram"}, {"boot_id", "boot-1"}}}}).status == 200);
    const Json order = orders(who);
    REQUIRE(order.size() == 1);
    REQUIRE(order[0]["kind"] == "inventory");
    const Json data = {{"ok", true}, {"code", ""}, {"message", ""}, {"result", facts}};
    REQUIRE(send(who, {{0, 0, order[0]["id"].get<OrderId>(), "finished", data}}).status == 200);
    settle();
    return who;
  }
  HttpResponse admit(Json body) {
    const Json base = {
        {"name", "node04"}, {"like", "node03"}, {"mac", kMac}, {"power_address", "10.20.1.14"}};
    Json request = base;
    if (body.is_object()) request.update(body);
    return call_as(1000, "POST", "/v1/nodes/admit", request.dump());
  }

 private:
  uint64_t seq_ = 0;
};

Json facts() {
  HardwareFacts found = *testing::seen_in_ram("04").facts;
  found.system.uuid = "uuid-04";
  found.system.serial = "SN04";
  return to_json(found);
}

bool says(const HttpResponse& answer, const std::string& words) {
  return answer.body.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("discovery is off until an operator switches it on, and is never on without an image to boot",
          "[api][admit]") {
  Cluster c;
  CHECK(c.get("/v1/nodes")["discover_until"] == 0);
  CHECK(c.call(Listener::boot, "GET", std::string("/boot/") + kMac + ".ipxe").body == "#!ipxe\nexit 1\n");
  const auto refused = c.call(Listener::local, "POST", "/v1/nodes/discover", R"({"on": true})");
  CHECK(refused.status == 422);
  CHECK(says(refused, "image 'cpu'"));
  CHECK(c.call(Listener::local, "POST", "/v1/nodes/discover", R"({"on": true, "for_ms": -5})").status == 422);
  CHECK(c.call(Listener::local, "POST", "/v1/nodes/discover", R"({"on": false})").status == 200);
  CHECK(c.get("/v1/nodes")["discover_until"] == 0);
}

TEST_CASE("an undeclared machine shows its inventory and can do nothing else", "[api][admit]") {
  Cluster c;
  c.discovery_on();
  const auto who = c.show_up(facts());
  const Json list = c.get("/v1/nodes");
  REQUIRE(list["unknown_machines"].size() == 1);
  const Json& machine = list["unknown_machines"][0];
  CHECK(machine["name"] == kName);
  CHECK(machine["serial"] == "SN04");
  CHECK(machine["facts"]["disks"].size() == 4);
  CHECK(list["nodes"].size() == 3);  // it is no node
  CHECK(c.get("/v1/nodes/" + kName)["facts"]["system"]["serial"] == "SN04");
  CHECK(c.call(Listener::tls, c.signed_by(who, "GET", "/agent/v1/files/muster-agent")).status == 403);
  // No plan can name it.
  CHECK(c.call(Listener::local, "POST", "/v1/plan", Json{{"kind", "reimage"}, {"nodes", {kName}}}.dump())
            .status == 422);
  c.on_reactor([&] { c.services().discovery.off(); });
  CHECK(c.call(Listener::tls, c.signed_by(who, "GET", "/agent/v1/orders?boot=boot-1&have=")).status == 403);
  CHECK(c.send(who, {}).status == 403);
  CHECK(c.get("/v1/nodes")["unknown_machines"].size() == 1);  // what was seen is still known
}

TEST_CASE("the end of discovery ends the requests of undeclared machines that wait", "[api][admit]") {
  Cluster c;
  c.discovery_on();
  const auto who = c.show_up(facts());
  const auto poll = c.send_request(c.signed_by(who, "GET", "/agent/v1/orders?boot=boot-1&have="));
  c.on_reactor([&] { c.services().discovery.off(); });
  CHECK(c.answer_of(*poll).status == 403);
}

TEST_CASE(
    "an undeclared machine's facts cannot name secrets, and answers without a request count for "
    "nothing",
    "[api][admit]") {
  Cluster c;
  c.discovery_on();
  Json evil = facts();
  evil["disks"][0]["model"] = "secret:bmc";
  const auto who = c.show_up(evil);
  CHECK(c.call(Listener::local, "GET", "/v1/nodes/" + kName).status == 404);
  const Json data = {{"ok", true}, {"code", ""}, {"message", ""}, {"result", facts()}};
  REQUIRE(c.send(who, {{0, 0, "0/made-up#1", "finished", data}}).status == 200);
  c.settle();
  CHECK(c.call(Listener::local, "GET", "/v1/nodes/" + kName).status == 404);
}

TEST_CASE("an admitted machine is a node of a new revision with its inventory, and its old self is gone",
          "[api][admit]") {
  Cluster c;
  c.build_image();
  c.discovery_on();
  const auto who = c.show_up(facts());
  const std::string before = c.get("/v1/spec")["text"].get<std::string>();
  const auto admitted = c.admit({});
  INFO(admitted.body);
  REQUIRE(admitted.status == 200);
  const Json reply = parse_json(admitted.body).value();
  CHECK(reply["revision"] == 2);
  CHECK(reply["address"] == "10.20.0.14");
  CHECK(reply["diff"].get<std::string>().find("+  - name: node04") != std::string::npos);
  CHECK(c.get("/v1/spec?rev=1")["text"] == before);
  CHECK(c.get("/v1/spec?rev=2")["caller"] == "anna");
  const Json node = c.get("/v1/nodes/node04");
  CHECK(node["declared"] == true);
  CHECK(node["mac"] == kMac);
  CHECK(node["bmc"] == "10.20.1.14");
  CHECK(node["product_uuid"] == "uuid-04");  // what its BMC and its next join are held against
  CHECK(node["state"] == "discovered");
  // One plan, for it alone, from what was found.
  const Json plan =
      parse_json(c.call(Listener::local, "POST", "/v1/plan", R"({"nodes": ["node04"]})").body).value();
  CHECK(plan["kind"] == "install");
  CHECK(plan["nodes"] == Json::array({"node04"}));
  CHECK(plan["text"].get<std::string>().find("OS04") != std::string::npos);
  // Said again, it changes nothing: approving the plan is a second call.
  const Json again = parse_json(c.admit({}).body).value();
  CHECK(again["unchanged"] == true);
  CHECK(c.get("/v1/spec")["revision"] == 2);
  CHECK(c.admit({{"mac", "52:54:00:20:00:05"}}).status == 422);
  // Its first certificate opens nothing any more.
  c.settle();
  CHECK(c.get("/v1/nodes")["unknown_machines"].empty());
  CHECK(c.call(Listener::local, "GET", "/v1/nodes/" + kName).status == 404);
  CHECK(c.call(Listener::tls, c.signed_by(who, "GET", "/agent/v1/orders?boot=boot-1&have=")).status == 401);
}

TEST_CASE("an admission that cannot work says why and stores nothing", "[api][admit]") {
  Cluster c;
  const auto off = c.admit({});
  CHECK(off.status == 404);
  CHECK(says(off, "discovery is off"));
  c.discovery_on();
  const auto unseen = c.admit({});
  CHECK(unseen.status == 404);
  CHECK(says(unseen, "discovery is on: boot the machine"));
  c.show_up(facts());
  const auto no_image = c.admit({});
  CHECK(no_image.status == 403);
  CHECK(says(no_image, "is not built"));
  c.build_image();
  const auto expect = [&](Json change, int status, const std::string& words) {
    const auto answer = c.admit(std::move(change));
    CAPTURE(answer.body);
    CHECK(answer.status == status);
    CHECK(says(answer, words));
  };
  expect({{"like", "node3"}}, 422, "did you mean 'node03'");
  expect({{"name", "node02"}}, 422, "in use");
  expect({{"name", "node 04"}}, 422, "not a host name");
  expect({{"power_address", ""}}, 422, "--power-address");
  expect({{"power_address", "10.20.1.13"}}, 422, "used by both");
  expect({{"mac", "52:54:00:20:00:99"}}, 404, "no machine with the MAC 52:54:00:20:00:99");
  expect({{"mac", "card 3"}}, 422, "not a MAC address");
  Json other = facts();
  other["system"]["uuid"] = "uuid-05";
  c.show_up(other, "52:54:00:20:00:05");
  expect({{"mac", ""}}, 422, "choose one with --mac");
  c.on_reactor([&] {
    c.services().bringup.executor().set_node("node04",
                                             [](NodeRow& row) { row.product_uuid = "uuid-of-old"; });
  });
  expect(Json::object(), 409, "muster node rm node04");
  CHECK(c.get("/v1/spec")["revision"] == 1);
}

TEST_CASE("a machine whose disks do not fit is not added: the plans of the others would stop at it",
          "[api][admit]") {
  Cluster c;
  c.build_image();
  c.discovery_on();
  Json few = facts();
  few["disks"].erase(few["disks"].begin());
  c.show_up(few);
  const auto refused = c.admit({});
  CHECK(refused.status == 403);
  CHECK(says(refused, "disk-count"));
  CHECK(c.get("/v1/spec")["revision"] == 1);
}

TEST_CASE("no machine is admitted while a run goes on", "[api][admit]") {
  Cluster c;
  c.build_image();
  c.discovery_on();
  c.show_up(facts());
  c.start_a_run("node01");
  CHECK(c.admit({}).status == 409);
}
