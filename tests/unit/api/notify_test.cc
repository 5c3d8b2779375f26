// Notices over the API and by the command: what is open, a test, an acknowledgement.
#include "tests/fakes/muster_command.h"
#include "tests/unit/api/controller.h"

using namespace muster;
using api::Listener;
using muster::testing::muster_command;
using testing::Controller;

namespace {

// Its receiver cannot be reached: there is no such program.
const char* const kSpec = R"(cluster: gaggle
network: { provisioning: { cidr: 10.20.0.0/24 } }
nodes:
  - { name: old, role: legacy, adopt: { host: 10.20.0.77, user: root, host_key: "SHA256:AAAAC3NzaC1lZDI1NTE5AAAAIMoH8DjInlSv4hPRVSz" } }
roles:
  legacy: { playbooks: [ base ] }
notify: { receivers: { pager: { program: no-such-program } } }
)";

}  // namespace

TEST_CASE("api: without a spec nothing is open, and a test finds no receiver", "[api][notices]") {
  Controller c;
  const Json shown = c.get("/v1/notices");
  CHECK(shown["causes"].empty());
  CHECK(shown["receivers"].empty());
  CHECK(c.call(Listener::local, "POST", "/v1/notices/test", "{}").status == 404);
  CHECK(c.call(Listener::local, "POST", "/v1/causes/3fa9/ack", "{}").status == 404);
  CHECK(c.call(Listener::local, "POST", "/v1/causes/3f/ack", "{}").status == 422);
  CHECK(c.call(Listener::local, "POST", "/v1/causes/3fa9/ack", "{").status == 422);
}

TEST_CASE("api: a test names what each receiver answered", "[api][notices]") {
  Controller c;
  c.open();
  REQUIRE(c.call(Listener::local, "PUT", "/v1/spec", kSpec).status == 200);
  const Json shown = c.get("/v1/notices");
  REQUIRE(shown["receivers"].size() == 1);
  CHECK(shown["receivers"][0]["name"] == "pager");
  CHECK(shown["receivers"][0]["waiting"] == 0);
  const Json sent = c.good(c.call(Listener::local, "POST", "/v1/notices/test", R"({"receiver": "pager"})"));
  REQUIRE(sent["receivers"].size() == 1);
  CHECK_FALSE(sent["receivers"][0]["error"].get<std::string>().empty());
  CHECK(c.call(Listener::local, "POST", "/v1/notices/test", R"({"receiver": "other"})").status == 404);

  CHECK(muster_command({"notify", "--socket", c.socket()}).exit == 0);
  CHECK(muster_command({"notify", "test", "pager", "--socket", c.socket()}).exit == 1);
  CHECK(muster_command({"notify", "test", "other", "--socket", c.socket()}).exit == 2);
  CHECK(muster_command({"ack", "3fa9", "--socket", c.socket()}).exit == 2);
  CHECK(muster_command({"ack", "--socket", c.socket()}).exit == 2);
}
