// Which role may call what: every route, through every listener, with wrong and right credentials.
#include <filesystem>
#include <fstream>

#include "base/digest.h"
#include "base/manifest.h"
#include "base/wire.h"
#include "sys/pki.h"
#include "tests/unit/api/controller.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using api::Listener;
using api::Role;
using testing::Controller;

namespace {

std::string concrete(const std::string& pattern) {
  std::string path;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '{')
      path += pattern[i];
    else
      path += "x", i = pattern.find('}', i);
  }
  return path;
}

HttpRequest join_request(const std::string& node, const std::string& token, const std::string& key) {
  wire::JoinRequest join;
  join.node = node;
  join.token = token;
  join.csr_pem = pki::make_csr(key, node).value();
  join.boot_id = "b";
  HttpRequest request;
  request.method = "POST";
  request.target = "/agent/v1/join";
  request.body = wire::to_json(join).dump();
  return request;
}

HttpRequest events_of(const pki::CertificateInfo& certificate) {
  HttpRequest request;
  request.method = "POST";
  request.target = "/agent/v1/events";
  request.body = wire::to_json(wire::EventBatch{"boot", "inc", {}}).dump();
  request.peer = certificate.common_name;
  request.peer_organization = certificate.organization;
  request.peer_serial = certificate.serial;
  return request;
}

}  // namespace

TEST_CASE("no route of the table answers without the right papers", "[api]") {
  Controller controller;
  for (const auto& route : api::routes()) {
    CAPTURE(route.method, route.path);
    const std::string path = concrete(route.path);
    const auto tls = controller.call(Listener::tls, route.method, path);
    const auto boot = controller.call(Listener::boot, route.method, path);
    switch (route.who) {
      case Role::operators: {
        CHECK(tls.status == 401);
        CHECK(boot.status == 404);
        HttpRequest wrong;
        wrong.method = route.method;
        wrong.target = path;
        wrong.headers["Authorization"] = "Bearer " + std::string(64, '0');
        CHECK(controller.call(Listener::tls, wrong).status == 401);
        // An agent is not an operator.
        wrong.headers.clear();
        wrong.peer = "node01";
        wrong.peer_organization = "muster-agent";
        CHECK(controller.call(Listener::tls, wrong).status == 401);
        break;
      }
      case Role::agents: {
        CHECK(tls.status == 401);
        CHECK(boot.status == 404);
        CHECK(controller.call(Listener::local, route.method, path).status == 404);
        // A certificate of ours that the store never issued, and one of another organization.
        HttpRequest unknown;
        unknown.method = route.method;
        unknown.target = path;
        unknown.peer = "node01";
        unknown.peer_serial = "abcd";
        unknown.peer_organization = "muster-agent";
        CHECK(controller.call(Listener::tls, unknown).status == 401);
        unknown.peer_organization = "muster-operator";
        CHECK(controller.call(Listener::tls, unknown).status == 401);
        break;
      }
      case Role::joiners: {
        CHECK(tls.status == 422);
        CHECK(boot.status == 404);
        CHECK(controller.call(Listener::local, route.method, path).status == 404);
        break;
      }
      case Role::machines: {
        CHECK(tls.status == 404);
        CHECK(controller.call(Listener::local, route.method, path).status == 404);
        break;
      }
    }
  }
}

TEST_CASE("the operator's token opens the TLS port, the Unix socket needs none", "[api]") {
  Controller controller;
  CHECK(controller.call(Listener::local, "GET", "/v1/version").status == 200);
  HttpRequest request;
  request.target = "/v1/version";
  request.headers["Authorization"] = "Bearer " + controller.services().authority.operator_token();
  CHECK(controller.call(Listener::tls, request).status == 200);
  CHECK(controller.call(Listener::local, "DELETE", "/v1/version").status == 405);
}

TEST_CASE("a token makes one certificate for one key of one node", "[api]") {
  Controller controller;
  const std::string key = pki::make_key().value(), other = pki::make_key().value();
  const std::string token = controller.token_for("node01");
  CHECK(controller.call(Listener::tls, join_request("node02", token, key)).status == 403);  // wrong node
  CHECK(controller.call(Listener::tls, join_request("node01", "guessed", key)).status ==
        403);  // unknown token
  const auto first = controller.call(Listener::tls, join_request("node01", token, key));
  REQUIRE(first.status == 200);
  const auto again = controller.call(Listener::tls, join_request("node01", token, key));
  CHECK(again.status == 200);
  CHECK(again.body == first.body);  // a lost reply is harmless
  CHECK(controller.call(Listener::tls, join_request("node01", token, other)).status ==
        403);  // used with another key
}

TEST_CASE("a joined agent is heard until its certificate is revoked", "[api]") {
  Controller controller;
  const auto joined = controller.call(
      Listener::tls, join_request("node01", controller.token_for("node01"), pki::make_key().value()));
  REQUIRE(joined.status == 200);
  const auto reply = wire::join_reply_from_json(parse_json(joined.body).value()).value();
  const auto certificate = pki::read_certificate(reply.certificate_pem).value();
  CHECK(certificate.common_name == "node01");
  CHECK(controller.call(Listener::tls, events_of(certificate)).status == 200);
  auto stolen = events_of(certificate);
  stolen.peer = "node02";  // another node's name with this serial
  CHECK(controller.call(Listener::tls, stolen).status == 401);
  REQUIRE(
      controller.call(Listener::local, "POST", "/v1/certificates/" + certificate.serial + "/revoke").status ==
      200);
  CHECK(controller.call(Listener::tls, events_of(certificate)).status == 401);
}

TEST_CASE("a second machine under a node's name takes the node out of the run, and neither is heard",
          "[api]") {
  Controller controller;
  REQUIRE(controller.call(Listener::local, "PUT", "/v1/spec", testing::kSpec).status == 200);
  controller.start_a_run("node01");
  const std::string token = controller.token_for("node01");
  const auto joined = controller.call(Listener::tls, join_request("node01", token, pki::make_key().value()));
  REQUIRE(joined.status == 200);
  const auto reply = wire::join_reply_from_json(parse_json(joined.body).value()).value();
  const auto certificate = pki::read_certificate(reply.certificate_pem).value();
  CHECK(controller.call(Listener::tls, events_of(certificate)).status == 200);
  CHECK(controller.call(Listener::tls, join_request("node01", token, pki::make_key().value())).status == 403);
  const auto node = parse_json(controller.call(Listener::local, "GET", "/v1/nodes/node01").body).value();
  CHECK(node.value("state", "") == "quarantined");
  CHECK(node.value("reason", "").find("second machine") != std::string::npos);
  CHECK(controller.call(Listener::tls, events_of(certificate)).status == 401);
  bool revoked = true;
  controller.on_reactor(
      [&] { revoked = controller.services().store.certificate(certificate.serial).value().revoked; });
  CHECK_FALSE(revoked);
  // Events are durable when what was written after them is.
  const auto logged = [&] {
    REQUIRE(controller.call(Listener::local, "PUT", "/v1/secrets/any", "value").status == 200);
    return controller.call(Listener::local, "GET", "/v1/nodes/node01/logs").body;
  };
  const std::string answer = logged();
  const auto log = parse_json(answer).value();
  INFO(answer);
  REQUIRE(log.contains("events"));
  int seconds = 0;
  for (const auto& event : log["events"])
    seconds += event["kind"] == "join" && event["data"].value("action", "") == "second";
  CHECK(seconds == 1);
  // The next power-on's join ends the first one's certificate; that it is still in use is reported.
  const auto again = controller.call(
      Listener::tls, join_request("node01", controller.token_for("node01"), pki::make_key().value()));
  REQUIRE(again.status == 200);
  CHECK(controller.call(Listener::tls, events_of(certificate)).status == 401);
  CHECK(logged().find("\"revoked\"") != std::string::npos);
}

TEST_CASE("a request of the wrong shape is refused and the controller lives on", "[api]") {
  Controller controller;
  REQUIRE(controller.call(Listener::local, "PUT", "/v1/spec", testing::kSpec).status == 200);
  CHECK(controller.call(Listener::local, "POST", "/v1/nodes/node01/quarantine", R"({"reason": 5})").status ==
        422);
  CHECK(controller.call(Listener::local, "POST", "/v1/nodes/discover", R"({"on": "yes"})").status == 422);
  CHECK(controller.call(Listener::local, "GET", "/v1/version").status == 200);
}

TEST_CASE("the spec stays as it is while a run goes on", "[api]") {
  Controller controller;
  const std::string before = testing::kSpec;
  REQUIRE(controller.call(Listener::local, "PUT", "/v1/spec", before).status == 200);
  // A BMC of another machine under the name of a node that the run is about to switch on.
  std::string after = before;
  after.replace(after.find("10.20.1.1{n}"), 12, "10.20.1.2{n}");
  controller.start_a_run("node01");
  const auto refused = controller.call(Listener::local, "PUT", "/v1/spec", after);
  CHECK(refused.status == 409);
  CHECK(refused.body.find("is under way") != std::string::npos);
  CHECK(controller.call(Listener::local, "PUT", "/v1/spec?dry=1", after).status == 200);
  CHECK(controller.call(Listener::local, "PUT", "/v1/spec", before).status ==
        200);  // the same again is no change
  CHECK(controller.call(Listener::local, "POST", "/v1/runs/1/cancel").status == 200);
  CHECK(controller.call(Listener::local, "PUT", "/v1/spec", after).status == 200);
}

TEST_CASE("an operator's quarantine holds until it is released", "[api]") {
  Controller controller;
  REQUIRE(controller.call(Listener::local, "PUT", "/v1/spec", testing::kSpec).status == 200);
  REQUIRE(
      controller.call(Listener::local, "POST", "/v1/nodes/node02/quarantine", R"({"reason": "PSU on order"})")
          .status == 200);
  CHECK(controller.observed("node02").held_by == HeldBy::an_operator);
  CHECK(controller.observed("node02").reason.find("PSU on order") != std::string::npos);
  CHECK(controller.observed("node01").held_by == HeldBy::nobody);
  controller.restart();
  CHECK(controller.observed("node02").held_by == HeldBy::an_operator);
  REQUIRE(controller.call(Listener::local, "POST", "/v1/nodes/node02/quarantine", R"({"release": true})")
              .status == 200);
  CHECK(controller.observed("node02").held_by == HeldBy::nobody);
}

TEST_CASE("a backup is written only for those who are on the machine", "[api]") {
  Controller controller;
  HttpRequest request;
  request.method = "POST";
  request.target = "/v1/backup";
  request.body = Json{{"path", controller.state() + "/copy.db"}}.dump();
  CHECK(controller.call(Listener::local, request).status == 200);
  CHECK(controller.call(Listener::local, request).status == 409);  // nothing is overwritten
  request.headers["Authorization"] = "Bearer " + controller.services().authority.operator_token();
  request.body = Json{{"path", controller.state() + "/other.db"}}.dump();
  CHECK(controller.call(Listener::tls, request).status == 403);
  CHECK_FALSE(std::filesystem::exists(controller.state() + "/other.db"));
}

TEST_CASE("keys in the wrong hands or without content stop the controller", "[api]") {
  TempDir dir;
  DaemonOptions options;
  options.state = dir.path("state");
  const auto reactor = make_reactor(1);
  REQUIRE(Daemon::create(*reactor, options).ok());
  const auto mode = std::filesystem::status(options.state).permissions();
  CHECK((mode & (std::filesystem::perms::group_all | std::filesystem::perms::others_all)) ==
        std::filesystem::perms::none);
  const std::string key = options.state + "/master.key";
  std::filesystem::permissions(key, std::filesystem::perms::group_read, std::filesystem::perm_options::add);
  CHECK(Daemon::create(*reactor, options).error().code == Code::denied);
  std::filesystem::permissions(key, std::filesystem::perms::group_read,
                               std::filesystem::perm_options::remove);
  std::ofstream(options.state + "/operator-token") << "\n";
  CHECK(Daemon::create(*reactor, options).error().code == Code::corrupt);
}

TEST_CASE("secrets go in and never come out", "[api]") {
  Controller controller;
  REQUIRE(controller.call(Listener::local, "PUT", "/v1/secrets/bmc", "admin:hunter2").status == 200);
  const auto listed = controller.call(Listener::local, "GET", "/v1/secrets");
  CHECK(listed.body.find("bmc") != std::string::npos);
  CHECK(listed.body.find("hunter2") == std::string::npos);
  CHECK(controller.call(Listener::local, "GET", "/v1/secrets/bmc").status == 405);
  const auto events = controller.call(Listener::local, "GET", "/v1/events/list");
  CHECK(events.body.find("hunter2") == std::string::npos);
}

TEST_CASE("files are served from their folder only", "[api]") {
  Controller controller;
  HttpRequest climbing;
  climbing.target = "/images/%2e%2e/muster.db";
  CHECK_FALSE(parse_target(climbing).ok());  // the server answers 400 before a handler sees it
  const std::string images = controller.state() + "/images";
  std::filesystem::create_directories(images);
  std::filesystem::create_symlink("../pki", images + "/out");
  ImageManifest image;
  image.name = "cpu";
  image.frame_size = 4096;
  image.raw_size = 4096;
  image.frames = {{0, 0, 4096, 6, sha256("frame"), sha256("raw"), false}};
  image.files = {{"kernel", "vmlinuz", sha256("k"), 1}};
  image.digest = manifest_digest(image);
  const std::string digest = image.digest.substr(7), other_digest(64, 'b'),
                    published = images + "/cpu/" + digest;
  std::filesystem::create_directories(published + "/ram");
  std::filesystem::create_directories(images + "/cpu/.layers/k/tree/etc");
  std::filesystem::create_directories(images + "/cpu/.build-1");
  for (const std::string& file :
       {published + "/vmlinuz", published + "/frames.zst", published + "/build.json", published + "/ram.json",
        published + "/ram/init", images + "/cpu/failed-gpu.log", images + "/cpu/.build-1/frames.zst",
        images + "/cpu/.layers/k/tree/etc/shadow"})
    std::ofstream(file) << "x";
  std::ofstream(published + "/manifest.json") << to_text(image);
  std::filesystem::create_symlink(digest, images + "/cpu/current");
  std::filesystem::create_symlink(digest,
                                  images + "/cpu/" + other_digest);  // a manifest under another digest
  const auto get = [&](const std::string& path) {
    return controller.call(Listener::boot, "GET", "/images/" + path).status;
  };
  for (const char* file : {"manifest.json", "frames.zst", "vmlinuz"})
    CHECK(get("cpu/" + digest + "/" + file) == 200);
  for (const std::string& path :
       {"cpu/" + digest + "/build.json", "cpu/" + digest + "/ram.json", "cpu/" + digest + "/ram/init",
        "cpu/" + digest + "/ram", std::string("cpu/.layers/k/tree/etc/shadow"),
        std::string("cpu/.build-1/frames.zst"), std::string("cpu/failed-gpu.log"),
        std::string("cpu/current/manifest.json"), "cpu/" + other_digest + "/manifest.json",
        std::string("x/y"), ".layers/" + digest + "/manifest.json"}) {
    CAPTURE(path);
    CHECK(get(path) == 404);
  }
  CHECK(controller.call(Listener::boot, "GET", "/ram/cpu/agent").status == 404);
  const auto chain = controller.call(Listener::boot, "GET", "/boot.ipxe");
  CHECK(chain.status == 200);
  CHECK(chain.body.find("\nchain boot/${mac:hexhyp}.ipxe ") != std::string::npos);
  const auto script = controller.call(Listener::boot, "GET", "/boot/52-54-00-00-00-01.ipxe");
  CHECK(script.status == 200);
  CHECK(script.body == "#!ipxe\nexit 1\n");  // that machine was not armed
}

TEST_CASE("the RAM system of a node restarts after a panic, and has the controller's kernel options",
          "[api]") {
  Controller controller;
  std::string spec = testing::kSpec;
  SECTION("unless the spec says otherwise") { spec += "vars: { kernel_options: panic=0 isolcpus=2-7 }\n"; }
  SECTION("by itself") {}
  const bool otherwise = spec != testing::kSpec;
  REQUIRE(controller.call(Listener::local, "PUT", "/v1/spec", spec).status == 200);
  controller.on_reactor([&] { controller.services().boot.arm("node01", [](Status) {}); });
  const std::string script = controller.call(Listener::boot, "GET", "/boot/52-54-00-20-00-01.ipxe").body;
  REQUIRE(script.find(" muster.node=node01 ") != std::string::npos);
  CHECK(script.find(otherwise ? " no_timer_check panic=0 " : " no_timer_check panic=30 ") !=
        std::string::npos);
  CHECK(script.find("isolcpus") == std::string::npos);  // for the installed system
}

TEST_CASE("a second controller on the same state is refused", "[api]") {
  TempDir dir;
  DaemonOptions options;
  options.state = dir.path("state");
  const auto reactor = make_reactor(1);
  const auto first = Daemon::create(*reactor, options);
  REQUIRE(first.ok());
  const auto second = Daemon::create(*reactor, options);
  REQUIRE_FALSE(second.ok());
  CHECK(second.error().code == Code::conflict);
}
