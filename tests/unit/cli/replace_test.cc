// `muster replace` against a whole controller: what it shows, does, and ends with.
#include <string>
#include <vector>

#include "cli/run.h"
#include "controller/executor/executor.h"
#include "tests/unit/api/controller.h"

using namespace muster;
using api::Listener;
using testing::Controller;

namespace {

const char* const kSpec = R"(cluster: gaggle
network: { provisioning: { cidr: 10.20.0.0/24, dhcp: managed }, bmc: { cidr: 127.0.0.0/8 } }
images: { cpu: { recipe: debian-12 } }
roles: { cpu: { playbooks: [ base ] } }
nodes:
  - { name: node01, role: cpu, power: { driver: redfish, address: 127.0.0.2, secret: bmc },
      mac: "52:54:00:20:00:01", image: cpu, disks: { os: { match: { serial: "OS*", count: 1 } } } }
)";

struct Site : Controller {
  Site() { good(call(Listener::local, "PUT", "/v1/spec", kSpec)); }
  int muster(std::vector<std::string> words) {
    words.insert(words.begin(), {"muster", "--socket", socket()});
    std::vector<const char*> argv;
    for (const std::string& word : words) argv.push_back(word.c_str());
    return cli::run(static_cast<int>(argv.size()), argv.data());
  }
  std::string id(const std::string& what) { return get("/v1/replace/" + what)["id"].get<std::string>(); }
  bool is_half_done() { return get("/v1/replace/ca")["step"] != "begin"; }
};

}  // namespace

TEST_CASE("muster replace: shown as JSON nothing is done, with --yes it is", "[replace][cli]") {
  Site c;
  c.open();
  for (const std::string what : {"token", "master-key", "ca"}) {
    CAPTURE(what);
    const std::string before = c.id(what);
    CHECK(c.muster({"replace", what, "--json"}) == 0);
    CHECK(c.id(what) == before);
    CHECK(c.muster({"replace", what, "--yes"}) == 0);
    CHECK(c.id(what) != before);
  }
  CHECK_FALSE(c.is_half_done());
  CHECK(c.muster({"replace"}) == 2);
  CHECK(c.muster({"replace", "bmc"}) == 2);
}

TEST_CASE("muster replace ca: a node that is off holds it, unless it is named", "[replace][cli]") {
  Site c;
  c.open();
  c.on_reactor(
      [&] { c.services().executor.set_node("node01", [](NodeRow& row) { row.image_digest = "sha256:i"; }); });
  const std::string before = c.id("ca");
  CHECK(c.muster({"replace", "ca", "--yes"}) == 3);
  CHECK(c.is_half_done());
  CHECK(c.id("ca") == before);
  CHECK(c.muster({"replace", "ca", "--json"}) == 3);
  CHECK(c.muster({"replace", "ca", "--yes"}) == 3);  // as before
  CHECK(c.muster({"replace", "ca", "--without", "node99", "--yes"}) == 2);
  CHECK(c.id("ca") == before);
  CHECK(c.muster({"replace", "ca", "--without", "node01", "--yes"}) == 3);  // it is left behind
  CHECK_FALSE(c.is_half_done());
  CHECK(c.id("ca") != before);
}
