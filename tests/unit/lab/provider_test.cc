// A lab behind a provider's API: what its spec says, and what the emulated API refuses as the original does.
#include "base/digest.h"
#include "lab/lab_network.h"
#include "lab/lab_spec.h"
#include "tests/catch.h"
#include "tests/fakes/phy_bench.h"

using namespace muster;
using namespace muster::lab;
using muster::testing::PhyBench;

namespace {

std::string spec_with(const std::string& api) {
  return R"(
cluster: t
network: { provisioning: { cidr: 10.20.0.0/24 } }
users: { ops: { keys: [] } }
nodes:
  - name: "node[01-02]"
    power: { driver: sakura-phy, address: "11310000000{n}", secret: sakura)" +
         api + R"( }
    mac: [ "52:54:00:aa:00:01", "52:54:00:aa:00:02" ]
lab: { memory_mib: 512, drives: [ { name: os, size: 8 GiB } ] }
)";
}

HttpRequest request(const std::string& method, const std::string& path, const std::string& body = "",
                    const std::string& secret = PhyBench::kSecret) {
  HttpRequest out;
  out.method = method;
  out.target = "/cloud/api/dedicated-phy/1.0/" + path;
  REQUIRE(parse_target(out).ok());
  out.body = body;
  out.headers["Authorization"] = "Basic " + to_base64(std::string(PhyBench::kToken) + ":" + secret);
  out.headers["X-Requested-With"] = "XMLHttpRequest";
  return out;
}

}  // namespace

TEST_CASE("machines behind a provider's API have its address and no BMC", "[lab][phy]") {
  const auto spec = lab_spec_from_yaml(spec_with(", api: \"10.20.1.250:443\""));
  if (!spec.ok()) FAIL(spec.error().message);
  CHECK(spec->provider_api == "10.20.1.250:443");
  CHECK(spec->secrets == std::vector<std::string>{"sakura"});
  CHECK(spec->nodes[1].server == "113100000002");
  CHECK(spec->nodes[1].bmc_address == "10.20.1.250");
  const auto again = lab_spec_from_json(to_json(*spec));
  REQUIRE(again.ok());
  CHECK(again->provider_api == spec->provider_api);
  CHECK(again->nodes[0].server == "113100000001");
  bool replaced = false;  // it is there already, for the first one
  for (const auto& command : node_commands(spec->nodes[1], "space"))
    for (size_t i = 1; i < command.size(); ++i)
      replaced = replaced || (command[i] == "10.20.1.250/32" && command[i - 1] == "replace");
  CHECK(replaced);
  CHECK(lab_spec_from_yaml(spec_with("")).error().code == Code::invalid);
}

TEST_CASE("a lab reads the lists of a spec as the controller does", "[lab][phy]") {
  const auto with = [](const std::string& what, const std::string& to) {
    std::string text = spec_with(", api: \"10.20.1.250:443\"");
    const auto at = text.find(what);
    REQUIRE(at != std::string::npos);
    return text.replace(at, what.size(), to);
  };
  const std::string ids = "\"11310000000{n}\"", secret = "secret: sakura, api: \"10.20.1.250:443\" }";
  const auto listed = lab_spec_from_yaml(with(ids, "[ \"113100000907\", 113100000031 ]"));
  if (!listed.ok()) FAIL(listed.error().message);
  CHECK(listed->nodes[0].server == "113100000907");
  CHECK(listed->nodes[1].server == "113100000031");
  CHECK(listed->nodes[1].bmc_address == "10.20.1.250");
  const auto own = lab_spec_from_yaml(with(secret, secret + "\n    address: [ 10.20.0.40, 10.20.0.9 ]"));
  if (!own.ok()) FAIL(own.error().message);
  CHECK(own->nodes[0].address == "10.20.0.40");
  CHECK(own->nodes[1].address == "10.20.0.9");
  for (const char* bad : {"[ \"113100000907\" ]", "[ \"113100000907\", \"11310000000{n}\" ]",
                          "[ \"113100000907\", ~ ]", "[ \"113100000907\", \"\" ]", "{ a: b }"}) {
    CAPTURE(bad);
    const auto refused = lab_spec_from_yaml(with(ids, bad));
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == Code::invalid);
    CHECK(refused.error().message.find("line 7, column ") != std::string::npos);
  }
}

TEST_CASE("the provider's API is as strict as the original", "[lab][phy]") {
  PhyBench bench(12);
  const auto status = [&](const HttpRequest& request) { return bench.api.handle(request).status; };
  const std::string server = "servers/" + bench.ids[0] + "/";
  CHECK(status(request("GET", "servers/")) == 200);
  CHECK(status(request("GET", "servers/", "", "wrong")) == 401);
  CHECK(parse_json(bench.api.handle(request("GET", "servers/", "", "wrong")).body)->at("status").is_string());
  CHECK(status(request("GET", "servers/" + bench.ids[0])) == 404);  // no '/' at its end
  CHECK(status(request("GET", "servers/1/power_status/")) == 404);
  CHECK(parse_json(bench.api.handle(request("GET", "servers/")).body)->at("servers").size() == 10);
  CHECK(parse_json(bench.api.handle(request("GET", "servers/?offset=10")).body)->at("servers").size() == 2);
  HttpRequest bare = request("POST", server + "power_control/", R"({"operation": "on"})");
  bare.headers.erase("X-Requested-With");
  CHECK(status(bare) == 400);
  CHECK(status(request("POST", server + "power_control/", R"({"operation": "cycle"})")) == 400);
  CHECK(status(request("POST", server + "os_install/", R"({"os_image_id": "nothing"})")) == 404);
  CHECK(status(request("POST", server + "os_install/", R"({"os_image_id": "debian12-x86_64"})")) ==
        400);  // password
  const std::string order =
      R"({"os_image_id": "debian12-x86_64", "password": "passw0rd", "allow_password_login": false)";
  CHECK(status(request("POST", server + "os_install/", order + "}")) == 400);  // no one could log in
  CHECK(status(request("POST", server + "os_install/",
                       order + R"(, "ssh_public_keys": ["ssh-ed25519 A"]})")) == 204);
  const auto lock = [&] {
    const Json all = *parse_json(bench.api.handle(request("GET", "servers/?limit=100")).body);
    for (const Json& one : all.at("servers"))
      if (one.at("server_id") == bench.ids[0]) return one.at("lock_status");
    return Json("gone");
  };
  CHECK(lock().is_null());  // a while after the 204
  bench.pass(10 * kSecond);
  CHECK(lock() == "os_install");
  CHECK(status(request("POST", server + "power_control/", R"({"operation": "on"})")) == 409);
  bench.pass(kMinute);
  CHECK(lock().is_null());
  CHECK(bench.installed[bench.ids[0]] == "debian12-x86_64");
  bench.api.change([](PhyManners& m) { m.quota = 1; });
  const auto throttled = bench.api.handle(request("GET", "servers/"));
  CHECK(throttled.status == 429);
  CHECK(std::stoi(throttled.headers.at("Retry-After")) > 3000);
}
