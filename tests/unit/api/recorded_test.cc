// Every route that changes something leaves an event that names its caller.
#include <filesystem>
#include <fstream>
#include <set>

#include "base/digest.h"
#include "base/manifest.h"
#include "controller/notices/book.h"
#include "controller/power/service/power_service.h"
#include "controller/rollout/rollout_record.h"
#include "tests/source_dir.h"
#include "tests/unit/api/controller.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using api::Listener;
using api::Role;
using testing::Controller;

namespace {

// Ended by an answer, or by the end of a stream.
class Ended : public Responder {
 public:
  explicit Ended(std::promise<void>& promise) : promise_(promise) {}
  void respond(HttpResponse) override { promise_.set_value(); }
  void start_stream(HttpResponse) override {}
  bool write(std::string) override { return true; }
  void end_stream() override { promise_.set_value(); }

 private:
  std::promise<void>& promise_;
};

std::string route_of(const HttpRequest& request) {
  std::map<std::string, std::string> args;
  for (const auto& route : api::routes())
    if (request.method == route.method && api::match(route.path, request.path, args))
      return std::string(route.method) + " " + route.path;
  return "";
}

bool names_caller(const Json& events, const std::string& caller) {
  for (const Json& event : events)
    for (const char* key : {"by", "reason"})
      if (event["data"].is_object() && event["data"].value(key, "").find(caller) != std::string::npos)
        return true;
  return false;
}

class Walk {
 public:
  void step(Controller& c, const std::string& method, const std::string& target,
            const std::string& body = "") {
    HttpRequest request;
    request.method = method;
    request.target = target;
    request.body = body;
    request.peer_uid = ++uid_;
    REQUIRE(parse_target(request).ok());
    CAPTURE(method, target);
    std::promise<void> promise;
    auto ended = promise.get_future();
    c.on_reactor([&] {
      api::dispatch(c.services(), Listener::local, request, std::make_shared<Ended>(promise),
                    api::caller_of(request, Controller::name_of));
    });
    REQUIRE(ended.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
    c.settle();
    const Json events = c.get("/v1/events/list?limit=5000")["events"];
    CHECK(names_caller(events, "uid " + std::to_string(uid_)));
    walked_.insert(route_of(request));
  }
  const std::set<std::string>& walked() const { return walked_; }

 private:
  uint32_t uid_ = 2000;  // of the last request; no user database has it
  std::set<std::string> walked_;
};

void write(Controller& c, std::vector<Write> rows) {
  std::promise<bool> written;
  c.on_reactor(
      [&] { c.services().store.write(std::move(rows), [&](Status done) { written.set_value(done.ok()); }); });
  REQUIRE(written.get_future().get());
}

std::string digest_in(const Json& answer) { return answer["digest"].get<std::string>(); }

std::string spec_text() {
  std::string spec = testing::kSpec;
  const std::string books = "[ base, storage, shared ]";
  return spec.replace(spec.find(books), books.size(), "[ base ]");
}

// An adopted host is added, and its run approved and cancelled.
void walk_runs(Walk& walk) {
  Controller c(source_dir() + "/playbooks", "/bin/true");
  walk.step(c, "PUT", "/v1/spec", spec_text());
  const Json host = {
      {"name", "spare01"}, {"like", "node03"}, {"host", "10.20.0.31"},
      {"port", 22},        {"user", "root"},   {"host_key", "SHA256:" + std::string(43, 'A')},
      {"address", ""},     {"joined", false},  {"facts", to_json(*testing::seen_in_ram("31").facts)}};
  Json adopt = {{"hosts", {host}}};
  adopt["digest"] = digest_in(c.good(c.call(Listener::local, "POST", "/v1/nodes/adopt", adopt.dump())));
  walk.step(c, "POST", "/v1/nodes/adopt", adopt.dump());
  CHECK(c.get("/v1/spec")["caller"].get<std::string>().starts_with("uid 2"));
  const std::string plan = digest_in(
      c.good(c.call(Listener::local, "POST", "/v1/plan", R"({"kind": "adopt", "nodes": ["spare01"]})")));
  walk.step(c, "POST", "/v1/plans/" + plan + "/approve", R"({"by": "muster up"})");
  const std::string approved_by = c.get("/v1/runs")["runs"][0]["approved_by"].get<std::string>();
  CHECK(approved_by.starts_with("uid 2"));
  CHECK(approved_by.ends_with(", muster up"));
  walk.step(c, "POST", "/v1/runs/1/cancel");
}

void walk_controller(Walk& walk) {
  Controller c(source_dir() + "/playbooks");
  c.good(c.call(Listener::local, "PUT", "/v1/spec", spec_text()));
  walk.step(c, "PUT", "/v1/secrets/any", "value");
  walk.step(c, "DELETE", "/v1/secrets/any");
  walk.step(c, "POST", "/v1/nodes/node01/quarantine", R"({"reason": "PSU"})");
  walk.step(c, "POST", "/v1/nodes/node01/quarantine", R"({"release": true})");
  walk.step(c, "POST", "/v1/nodes/discover", R"({"on": false})");
  walk.step(c, "POST", "/v1/backup", Json{{"path", c.state() + "/copy.db"}}.dump());
  const Json token = c.get("/v1/replace/token");
  walk.step(c, "POST", "/v1/replace/token", Json{{"id", token["id"]}, {"step", token["step"]}}.dump());
  NodeRow gone;
  gone.name = "gone01";
  write(c, {CertificateRow{"0a", "node01", "f", 3}, gone});
  walk.step(c, "POST", "/v1/certificates/0a/revoke");
  walk.step(c, "DELETE", "/v1/nodes/gone01");
  // That failed, too.
  walk.step(c, "POST", "/v1/images/build", R"({"name": "other", "recipe": "none"})");
  walk.step(c, "POST", "/v1/images/import", Json{{"path", c.state() + "/none.tar"}}.dump());
  walk.step(c, "POST", "/v1/images/export", Json{{"name", "other"}, {"path", c.state() + "/out.tar"}}.dump());
}

const char* const kRolloutSpec = R"(cluster: gaggle
network: { provisioning: { cidr: 10.20.0.0/24, dhcp: managed }, bmc: { cidr: 127.0.0.0/8 } }
images: { cpu: { recipe: debian-12 } }
roles: { cpu: { playbooks: [ base ] } }
rollout: { roles: [ cpu ] }
nodes:
  - { name: node01, role: cpu, power: { driver: redfish, address: 127.0.0.2, secret: bmc },
      mac: "52:54:00:20:00:01", image: cpu, disks: { os: { match: { serial: "OS*", count: 1 } } } }
  - { name: node02, role: cpu, power: { driver: manual, address: "rack 3", within: 2 h },
      mac: "52:54:00:20:00:02", image: cpu, disks: { os: { match: { serial: "OS*", count: 1 } } } }
)";

void walk_power(Walk& walk) {
  Controller c;
  c.good(c.call(Listener::local, "PUT", "/v1/spec", kRolloutSpec));
  // Without the BMC's password nothing is switched, but the request is recorded.
  for (const char* verb : {"on", "off", "shut-down", "cycle", "network-once"})
    walk.step(c, "POST", std::string("/v1/power/node01/") + verb);
  c.on_reactor(
      [&] { c.services().power.manual_tasks().request("node02", ByHand::Task::off, [](Status) {}); });
  walk.step(c, "POST", "/v1/power/node02/done");
}

// Puts an image that counts as built into the state folder.
void build_image(const Controller& c) {
  ImageManifest image;
  image.name = "cpu";
  image.os = "Debian";
  image.kernel = "6.1";
  image.frame_size = 4096;
  image.raw_size = 4096;
  image.frames = {{0, 0, 4096, 6, sha256("frame"), sha256("raw"), false}};
  image.files = {{"kernel", "vmlinuz", sha256("k"), 1}};
  image.digest = manifest_digest(image);
  const std::string images = c.state() + "/images/cpu/", hex = image.digest.substr(7);
  std::filesystem::create_directories(images + hex);
  std::ofstream(images + hex + "/manifest.json") << to_text(image);
  std::filesystem::create_directory_symlink(hex, images + "current");
}

void walk_rollout(Walk& walk) {
  Controller c;
  build_image(c);
  c.good(c.call(Listener::local, "PUT", "/v1/spec", kRolloutSpec));
  const Json planned = c.good(c.call(Listener::local, "POST", "/v1/rollout/plan", "{}"));
  const Json approval = {{"digest", planned["approval"]["digest"]}, {"by", "muster rollout approve"}};
  walk.step(c, "POST", "/v1/rollout/approve", approval.dump());
  CHECK(c.get("/v1/rollout")["approval"]["by"].get<std::string>().ends_with(", muster rollout approve"));
  walk.step(c, "POST", "/v1/rollout/skip", R"({"node": "node01", "reason": "demo"})");
  CHECK(c.get("/v1/rollout")["skips"][0]["by"].get<std::string>().starts_with("uid 2"));
  walk.step(c, "POST", "/v1/rollout/start", "{}");

  Controller under_way;
  rollout::Record record;
  record.id = 3;
  record.row = rollout::begun(3, "target");
  record.skips["n1"] = {"demo", "ada", 5, 0};
  write(under_way, {RolloutRow{record.id, 1, to_text(record)}});
  walk.step(under_way, "POST", "/v1/rollout/pause", R"({"by": "muster rollout pause"})");
  CHECK(under_way.get("/v1/rollout")["why_paused"].get<std::string>().starts_with("by uid 2"));
  walk.step(under_way, "POST", "/v1/rollout/resume");
  walk.step(under_way, "POST", "/v1/rollout/unskip", R"({"node": "n1"})");
}

void walk_causes(Walk& walk) {
  Controller c;
  notices::OpenCause open;
  open.cause = "3fa94c01d2e5";
  open.kind = "node_silent";
  open.what = "node01 is silent";
  open.next = "muster power state node01";
  open.nodes = {"node01"};
  notices::Book book;
  book.causes[open.cause] = open;
  write(c, {NoticesRow{1, 0, notices::to_text(book)}});
  walk.step(c, "POST", "/v1/causes/3fa9/ack", R"({"reason": "PSU"})");
  CHECK(c.get("/v1/notices")["causes"][0]["acknowledged"]["by"].get<std::string>().starts_with("uid 2"));
}

}  // namespace

TEST_CASE("each route with which an operator changes something records its caller", "[api][caller]") {
  Walk walk;
  walk_runs(walk);
  walk_controller(walk);
  walk_power(walk);
  walk_rollout(walk);
  walk_causes(walk);
  const std::set<std::string> changes_nothing = {"POST /v1/plan", "POST /v1/rollout/plan",
                                                 "POST /v1/notices/test", "POST /v1/doctor",
                                                 "POST /v1/spec/preview"};
  const std::set<std::string> elsewhere = {"POST /v1/nodes/admit"};  // tests/unit/api/admit_test.cc
  for (const auto& route : api::routes()) {
    const std::string name = std::string(route.method) + " " + route.path;
    if (route.who != Role::operators || std::string(route.method) == "GET") continue;
    CAPTURE(name);
    CHECK(walk.walked().count(name) + changes_nothing.count(name) + elsewhere.count(name) == 1);
  }
}
