// A controller whose database is an older copy of itself: what it does with the run in it, and what it
// believes of the nodes.
#include <fcntl.h>

#include <filesystem>
#include <fstream>

#include "base/wire.h"
#include "controller/store/migrate.h"
#include "sys/pki.h"
#include "sys/private_folder.h"
#include "tests/unit/api/controller.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using api::Listener;
using testing::Controller;

namespace {

struct Cluster : Controller {
  Cluster() {
    REQUIRE(call(Listener::local, "PUT", "/v1/spec", testing::kSpec).status == 200);
    key = pki::make_key().value();
    wire::JoinRequest join;
    join.node = "node01";
    join.token = token_for("node01");
    join.csr_pem = pki::make_csr(key, join.node).value();
    join.boot_id = "boot-1";
    const auto joined = call(Listener::tls, "POST", "/agent/v1/join", wire::to_json(join).dump());
    REQUIRE(joined.status == 200);
    agent = pki::read_certificate(
                wire::join_reply_from_json(parse_json(joined.body).value()).value().certificate_pem)
                .value();
    say_hello();
    start_a_run("node01");
    settle();
  }
  HttpResponse as_agent(const std::string& method, const std::string& target, const std::string& body = "") {
    return call(Listener::tls, signed_by(agent, method, target, body));
  }
  void say_hello() {
    wire::EventBatch batch{"boot-1", "inc", {{1, 0, "", "hello", {{"mode", "ram"}, {"boot_id", "boot-1"}}}}};
    REQUIRE(as_agent("POST", "/agent/v1/events", wire::to_json(batch).dump()).status == 200);
  }
  // What it has and no longer counts is answered at once; else the call would wait for orders.
  Json request(const std::string& who) {
    const auto answer = as_agent("GET", "/agent/v1/orders?" + who + "&have=1-x%2Fnowhere%231");
    REQUIRE(answer.status == 200);
    return parse_json(answer.body).value();
  }
  std::string key;
  pki::CertificateInfo agent;
};

}  // namespace

TEST_CASE("what a killed controller left of a copy in its state folder is removed at the next start",
          "[api][restored]") {
  Controller c;
  std::string left;
  c.restart([&] {
    const OpenFd folder(::open(c.state().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const auto made = make_private_folder(folder.get(), c.state());
    REQUIRE(made.ok());
    left = c.state() + "/" + made->name;
    std::ofstream(left + "/copy.db") << "half of a copy";
  });
  CHECK_FALSE(std::filesystem::exists(left));
  for (const auto& one : std::filesystem::directory_iterator(c.state()))
    CHECK_FALSE(one.path().filename().string().starts_with(".muster."));
}

TEST_CASE("a run of an older copy of the database is not continued, and the status says why",
          "[api][restored]") {
  Cluster c;
  const std::string database = c.state() + "/muster.db", copy = c.state() + "/copy.db";
  REQUIRE(backup_store(database, copy).ok());
  c.settle();  // the controller went on
  const auto put_back = [&] {
    for (const char* with : {"", "-wal", "-shm"}) std::filesystem::remove(database + with);
    std::filesystem::copy_file(copy, database);
  };
  SECTION("the same database: it goes on") {
    c.restart();
    c.open();
    CHECK(c.active());
    CHECK_FALSE(c.get("/v1/status")["problems"].contains("database"));
    CHECK(c.observed("node01").mode == wire::Mode::ram);
    return;
  }
  c.restart(put_back);
  c.open();
  CHECK_FALSE(c.active());
  const Json run = c.get("/v1/runs")["runs"][0];
  CHECK(run["state"] == "cancelled");
  CHECK(c.get("/v1/status")["problems"].contains("database"));
  CHECK(c.request("boot=boot-7")["orders"].empty());
  // What the copy knows of the node is worth nothing until the node says what it is.
  CHECK(c.observed("node01").doubtful);
  CHECK_FALSE(c.observed("node01").mode.has_value());
  CHECK_FALSE(c.observed("node01").online);
  CHECK(c.observed("node02").doubtful);
  c.request("boot=boot-7&mode=installed&image=sha256%3Ax");
  c.settle();
  const NodeObservation seen = c.observed("node01");
  CHECK_FALSE(seen.doubtful);
  CHECK(seen.online);
  CHECK(seen.mode == wire::Mode::installed);
  CHECK(seen.image_digest == "sha256:x");
  CHECK(c.get("/v1/nodes/node01")["boot_id"] == "boot-7");
  CHECK_FALSE(seen.on_trial);
  c.request("boot=boot-7&mode=installed&image=sha256%3Ax&slot=b&trial=1");
  CHECK(c.observed("node01").on_trial);
  CHECK(c.observed("node01").slot == "b");
  c.request("boot=boot-7&mode=installed&image=sha256%3Ax&slot=b");
  CHECK_FALSE(c.observed("node01").on_trial);
  // The next start is an ordinary one.
  c.restart();
  c.open();
  CHECK_FALSE(c.get("/v1/status")["problems"].contains("database"));
  CHECK_FALSE(c.observed("node01").doubtful);
  CHECK(c.observed("node02").doubtful);
}

TEST_CASE("that a node is on trial is known with its next request, and ended by the one after the commit",
          "[api][restored]") {
  Cluster c;
  const auto on_trial = [&c] {
    bool is = false;
    c.on_reactor([&] { is = c.services().bringup.executor().on_trial("node01"); });
    return is;
  };
  c.restart();
  c.open();
  CHECK_FALSE(on_trial());
  const std::string boot = "boot=boot-1&mode=installed&slot=b&image=sha256%3Ax";
  c.request(boot + "&trial=1");
  CHECK(on_trial());
  c.request(boot);
  CHECK_FALSE(on_trial());
  c.request(boot + "&trial=1");
  CHECK(on_trial());
  c.request(boot + "&trial=yes");  // no word of this protocol
  CHECK_FALSE(on_trial());
}
