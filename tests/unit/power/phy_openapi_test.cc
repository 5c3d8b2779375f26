// Every request that the driver and its installation send is one that the provider's published description
// allows; and the judge of that notices when one is not. An outside judge of the same:
// tests/peers/phy-prism.sh.
#include <cstdlib>

#include "base/json_dump.h"
#include "controller/power/sakura/sakura_phy.h"
#include "sys/os.h"
#include "tests/catch.h"
#include "tests/fakes/openapi.h"
#include "tests/fakes/phy_bench.h"
#include "tests/source_dir.h"

using namespace muster;
using testing::OpenApi;
using testing::PhyBench;

namespace {

constexpr const char* kBase = "/cloud/api/dedicated-phy/1.0";

OpenApi published() {
  const auto text = Files("/").read(source_dir() + "/tests/golden/phy/openapi.json");
  REQUIRE(text.ok());
  return OpenApi(*parse_json(*text), kBase);
}

HttpRequest order(const std::string& path, const std::string& body) {
  HttpRequest out;
  out.method = "POST";
  out.target = std::string(kBase) + path;
  REQUIRE(parse_target(out).ok());
  out.headers = {{"X-Requested-With", "XMLHttpRequest"}, {"Content-Type", "application/json"}};
  out.body = body;
  return out;
}

// Everything that the driver and an installation ask for, once.
std::vector<HttpRequest> all_requests() {
  PhyBench bench;
  const auto driver = bench.driver();
  REQUIRE(driver->on(kMinute).ok());
  REQUIRE(driver->state(kMinute).ok());
  REQUIRE(driver->describe(kMinute).ok());
  bench.machine().set_listens(false);
  REQUIRE(driver->off(4 * kMinute, true).ok());
  const auto install = make_phy_install(bench.target(), bench.account(bench.target()));
  bench.pass(kMinute);
  REQUIRE(install->prepare(PhyBench::kImage, kMinute).ok());
  const std::string key =
      "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICH8nlozujNPhuaMeMSyUf+wm+YmKWqN7wZk2YDaalSf x";
  REQUIRE(install
              ->begin({PhyBench::kImage, key, "m1abcdef012345", bench.ids[0], std::make_shared<Permit>()},
                      kMinute)
              .ok());
  REQUIRE(install->look(bench.ids[0], kMinute).ok());
  std::vector<HttpRequest> out = bench.requests();
  out.erase(out.begin());  // the look at its certificate
  return out;
}

}  // namespace

TEST_CASE("phy: every request is valid by the provider's own description", "[power][phy][openapi]") {
  OpenApi judge = published();
  int judged = 0;
  for (HttpRequest request : all_requests()) {
    REQUIRE(parse_target(request).ok());
    ++judged;
    for (const std::string& complaint : judge.complaints(request)) FAIL_CHECK(complaint);
    CHECK(request.headers.at("Authorization").starts_with("Basic "));
  }
  CHECK(judged >= 8);
}

TEST_CASE("phy: the judge of requests sees what is wrong with one", "[power][phy][openapi]") {
  OpenApi judge = published();
  const std::string install = "/servers/113100000001/os_install/",
                    power = "/servers/113100000001/power_control/";
  CHECK(judge.complaints(order(power, R"({"operation": "on"})")).empty());
  CHECK(judge.complaints(order(install, R"({"os_image_id": "debian12"})")).empty());
  CHECK_FALSE(judge.complaints(order(power, R"({"operation": "cycle"})")).empty());
  CHECK_FALSE(judge.complaints(order(power, R"({})")).empty());
  CHECK_FALSE(judge.complaints(order("/servers/12/power_control/", R"({"operation": "on"})")).empty());
  CHECK_FALSE(
      judge.complaints(order("/servers/113100000001/power_control", R"({"operation": "on"})")).empty());
  CHECK_FALSE(judge.complaints(order(install, R"({"os_image_id": 12})")).empty());
  CHECK_FALSE(judge.complaints(order(install, R"({"os_image_id": "x", "password": "short"})")).empty());
  CHECK_FALSE(judge.complaints(order(install, R"({"os_image_id": "x", "user_data": ""})")).empty());
  HttpRequest bare = order(power, R"({"operation": "on"})");
  bare.headers.erase("X-Requested-With");
  CHECK_FALSE(judge.complaints(bare).empty());
}

// For tests/peers/phy-prism.sh: one line of JSON for each request, into the file that it names.
TEST_CASE("phy: requests for an outside judge", "[.phy-requests]") {
  const char* path = std::getenv("MUSTER_PHY_REQUESTS");
  REQUIRE(path);
  std::string lines;
  for (const HttpRequest& one : all_requests()) {
    Json headers = Json::object();
    for (const char* name : {"X-Requested-With", "Content-Type", "Authorization"})
      if (const auto given = one.headers.find(name); given != one.headers.end())
        headers[name] = given->second;
    lines += dump_json(
                 {{"method", one.method}, {"target", one.target}, {"headers", headers}, {"body", one.body}}) +
             "\n";
  }
  REQUIRE(Files("/").write(path, lines).ok());
}
