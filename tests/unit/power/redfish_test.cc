// What BMCs do that no profile of the lab shows, and what the driver must refuse.
#include "controller/power/redfish.h"

#include <algorithm>

#include "base/digest.h"
#include "controller/power/describe/driver_description.h"
#include "controller/power/wrap.h"
#include "controller/spec/schema.h"
#include "tests/fakes/bmc_bench.h"

using namespace muster;

namespace {

constexpr DurationMs kCall = kMinute;

std::unique_ptr<Power> driver(BmcBench& bench) { return make_redfish(bench.target, bench.waiter()); }
std::unique_ptr<Power> retrying(BmcBench& bench) { return with_retries(driver(bench), bench.waiter(), 7); }

bool requested(const BmcBench& bench, const std::string& what) {
  return std::any_of(bench.seen.begin(), bench.seen.end(),
                     [&](const auto& one) { return one.starts_with(what); });
}

std::optional<HttpResponse> refuse(int status, const std::string& id) {
  return lab::redfish_error(status, id, "no");
}

}  // namespace

TEST_CASE("redfish: the certificate is learnt without a password, then enforced", "[power]") {
  BmcBench bench("generic");
  bool password_before_pin = false;
  bench.before = [&](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (bench.learnt_pin.empty() && request.headers.count("Authorization")) password_before_pin = true;
    return std::nullopt;
  };
  REQUIRE(driver(bench)->state(kCall).ok());
  CHECK(bench.learnt_pin.starts_with("sha256:"));
  CHECK_FALSE(password_before_pin);

  BmcBench impostor("generic");
  impostor.target.pin_sha256 = bench.learnt_pin;
  const auto refused = retrying(impostor)->on(kCall);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Code::denied);
  CHECK(impostor.seen.empty());
}

TEST_CASE("redfish: another machine is never touched", "[power]") {
  BmcBench bench("generic");
  bench.target.expected_uuid = "99999999-9abc-def0-1234-56789abcdef0";
  bench.machine.start();
  const auto power = retrying(bench);
  for (const Status& status : {power->on(kCall), power->off(kCall, false), power->off(kCall, true),
                               power->boot_once_network(kCall)}) {
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().code == Code::denied);
  }
  CHECK(bench.machine.running());
  CHECK_FALSE(requested(bench, "POST"));
  CHECK_FALSE(requested(bench, "PATCH"));
  SECTION("an address that changes machines between two calls") {
    BmcBench swapped("generic");
    swapped.target.expected_uuid = BmcBench::kUuid;
    const auto same = driver(swapped);
    REQUIRE(same->on(kCall).ok());
    swapped.after = [](const HttpRequest&, HttpResponse& response) {
      Json body = parse_json(response.body).value_or(Json());
      if (!body.is_object() || !body.contains("SerialNumber")) return;
      body["UUID"] = "99999999-9abc-def0-1234-56789abcdef0";
      response.body = body.dump();
    };
    CHECK(same->off(kCall, false).error().code == Code::denied);
    CHECK(swapped.machine.running());
  }
}

TEST_CASE("redfish: for a node never seen, the machine of another node is never touched", "[power]") {
  const auto known = [](const std::string& uuid) {
    auto machines = std::make_shared<Machines>();
    machines->bind(uuid, "gpu03");
    return machines;
  };
  BmcBench bench("generic");
  bench.machine.start();
  SECTION("in the BMC's spelling") { bench.target.machines = known(BmcBench::kUuid); }
  SECTION("in the other byte order") {
    bench.target.machines = known("78563412-BC9A-F0DE-1234-56789ABCDEF0");
  }
  const auto power = retrying(bench);
  for (const Status& status : {power->off(kCall, false), power->off(kCall, true),
                               power->boot_once_network(kCall), power->on(kCall)}) {
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().code == Code::denied);
    CHECK(status.error().message.find("which is node gpu03, but gpu01 was never seen") != std::string::npos);
    CHECK(status.error().message.find("muster node rm gpu03") != std::string::npos);
  }
  CHECK(bench.machine.running());
  CHECK_FALSE(requested(bench, "POST"));
  CHECK_FALSE(requested(bench, "PATCH"));
}

TEST_CASE("redfish: a machine that is no other node's is the never-seen node's own", "[power]") {
  BmcBench bench("generic");
  bench.machine.start();
  auto machines = std::make_shared<Machines>();
  machines->bind("99999999-9abc-def0-1234-56789abcdef0", "gpu03");
  bench.target.machines = machines;
  CHECK(driver(bench)->off(kCall, false).ok());
  CHECK_FALSE(bench.machine.running());
}

TEST_CASE("redfish: a UUID is recognised in either byte order", "[power]") {
  BmcBench bench("generic");
  bench.target.expected_uuid = "78563412-BC9A-F0DE-1234-56789ABCDEF0";
  CHECK(driver(bench)->state(kCall).ok());
}

TEST_CASE("redfish: a wrong password is said once, without the password", "[power]") {
  BmcBench bench("generic");
  bench.target.password = "hunter2";
  const auto refused = retrying(bench)->on(kCall);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Code::denied);
  CHECK(refused.error().message.find("hunter2") == std::string::npos);
  CHECK_FALSE(bench.machine.running());
  CHECK(bench.seen.size() < 8);  // no lock-out by retries
}

TEST_CASE("redfish: where Basic is off, one session is used and given back", "[power]") {
  BmcBench bench("generic");
  bench.before = [](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.headers.count("Authorization")) return refuse(401, "NoValidSession");
    return std::nullopt;
  };
  {
    const auto power = driver(bench);
    REQUIRE(power->on(kCall).ok());
    REQUIRE(power->boot_once_network(kCall).ok());
  }
  CHECK(std::count(bench.seen.begin(), bench.seen.end(), "POST /redfish/v1/SessionService/Sessions") == 1);
  CHECK(bench.seen.back().starts_with("DELETE /redfish/v1/SessionService/Sessions/"));
}

TEST_CASE("redfish: ETags as vendors want them", "[power]") {
  BmcBench bench("generic");
  std::string weakness;
  SECTION("weak tags are shown, strong ones wanted") { weakness = "W/"; }
  SECTION("If-Match is never right") { weakness = "W/x"; }
  SECTION("empty tags are no tags") { weakness = "empty"; }
  bench.after = [&](const HttpRequest&, HttpResponse& response) {
    if (response.headers.count("ETag"))
      response.headers["ETag"] = weakness == "empty" ? "\"\"" : "W/" + response.headers["ETag"];
  };
  bench.before = [&](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.method != "PATCH") return std::nullopt;
    const auto match = request.headers.find("If-Match");
    const std::string tag = match == request.headers.end() ? "" : match->second;
    if (weakness == "W/" && (tag.empty() || tag.starts_with("W/"))) return refuse(412, "PreconditionFailed");
    if (weakness == "W/x" && !tag.empty()) return refuse(412, "PreconditionFailed");
    if (weakness == "empty" && tag == "\"\"") return refuse(400, "PropertyUnknown");
    return std::nullopt;
  };
  const Status set = driver(bench)->boot_once_network(kCall);
  INFO((set.ok() ? "" : set.error().message));
  CHECK(set.ok());
  CHECK(bench.bmc().override_text() == "Once Pxe");
}

TEST_CASE("redfish: a mode that cannot be written is left out", "[power]") {
  BmcBench bench("generic");
  bench.before = [](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.method == "PATCH" && request.body.find("Mode") != std::string::npos)
      return refuse(400, "PropertyNotWritable");
    return std::nullopt;
  };
  CHECK(driver(bench)->boot_once_network(kCall).ok());
  CHECK(bench.bmc().override_text() == "Once Pxe");
}

TEST_CASE("redfish: accepted but not done is a failure", "[power]") {
  BmcBench bench("generic");
  bench.before = [](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.method == "PATCH") return HttpResponse{.status = 204};
    return std::nullopt;
  };
  const Status set = driver(bench)->boot_once_network(kCall);
  REQUIRE_FALSE(set.ok());
  CHECK(set.error().code == Code::failed);
}

TEST_CASE("redfish: refused but done counts as done", "[power]") {
  BmcBench bench("generic");
  bench.before = [&](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.method != "PATCH") return std::nullopt;
    (void)bench.bmc().handle(request);
    return refuse(400, "GeneralError");
  };
  CHECK(driver(bench)->boot_once_network(kCall).ok());
}

TEST_CASE("redfish: an order whose answer is lost is looked at, not repeated", "[power]") {
  BmcBench bench("generic");
  int orders = 0;
  bench.before = [&](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.method != "POST") return std::nullopt;
    ++orders;
    (void)bench.bmc().handle(request);
    return HttpResponse::text(500, "internal error");
  };
  CHECK(retrying(bench)->on(kCall).ok());
  CHECK(bench.machine.running());
  CHECK(orders == 1);
}

TEST_CASE("redfish: a BMC that is busy or in POST is called again, by the wrapper only", "[power]") {
  BmcBench bench("generic");
  SECTION("503 for a while") {
    bench.bmc().fail_until(bench.clock + 20 * kSecond);
    CHECK(driver(bench)->on(kCall).error().code == Code::unavailable);
    CHECK(retrying(bench)->on(kCall).ok());
    CHECK(bench.clock >= 1'020'000);
  }
  SECTION("503 for ever") {
    bench.bmc().fail_until(bench.clock + 100 * kMinute);
    const TimeMs start = bench.clock;
    CHECK(retrying(bench)->on(kCall).error().code == Code::unavailable);
    CHECK(bench.clock - start <= kCall);
  }
  SECTION("HPE in POST") {
    int refusals = 2;
    bench.before = [&](const HttpRequest& request) -> std::optional<HttpResponse> {
      if (request.method == "PATCH" && refusals-- > 0)
        return refuse(400, "iLO.2.15.UnableToModifyDuringSystemPOST");
      return std::nullopt;
    };
    CHECK(retrying(bench)->boot_once_network(kCall).ok());
  }
}

TEST_CASE("redfish: redirects and odd answers", "[power]") {
  BmcBench bench("generic");
  SECTION("a redirect to the same BMC is followed") {
    bench.before = [](const HttpRequest& request) -> std::optional<HttpResponse> {
      if (request.target != "/redfish/v1/Systems") return std::nullopt;
      HttpResponse moved{.status = 308};
      moved.headers["Location"] = "/redfish/v1/Systems/";
      return moved;
    };
    CHECK(driver(bench)->state(kCall).ok());
  }
  SECTION("no system that can be reset") {
    bench.after = [](const HttpRequest& request, HttpResponse& response) {
      if (request.path == "/redfish/v1/Systems/1")
        response.body = R"({"Id":"1","PowerState":"Off","Actions":[]})";
    };
    CHECK(driver(bench)->on(kCall).error().code == Code::invalid);
  }
  SECTION("JSON of a wrong shape") {
    bench.after = [](const HttpRequest&, HttpResponse& response) { response.body = R"([1,{"Systems":7}])"; };
    CHECK_FALSE(driver(bench)->describe(kCall).ok());
  }
  SECTION("no JSON at all") {
    bench.after = [](const HttpRequest&, HttpResponse& response) { response.body = "<html>login</html>"; };
    CHECK_FALSE(driver(bench)->state(kCall).ok());
  }
  SECTION("no Pxe among the targets") {
    bench.after = [](const HttpRequest&, HttpResponse& response) {
      const size_t at = response.body.find("\"Pxe\"");
      if (at != std::string::npos) response.body.replace(at, 5, "\"Usb\"");
    };
    CHECK(driver(bench)->boot_once_network(kCall).error().code == Code::invalid);
  }
}

TEST_CASE("redfish: describe shows what was found, never the password", "[power]") {
  BmcBench bench("dgx-h100");
  const auto found = driver(bench)->describe(kCall);
  REQUIRE(found.ok());
  CHECK((*found)["uuid"] == BmcBench::kUuid);
  CHECK((*found)["serial"] == "SN-1");
  CHECK((*found)["power"] == "off");
  CHECK((*found)["vendor"] == "AMI");
  CHECK((*found)["boot_written_to"] == "/redfish/v1/Systems/DGX/SD");
  CHECK((*found)["reset_types"].size() == 4);
  CHECK(found->dump().find("pw:with") == std::string::npos);
}

TEST_CASE("every registered power driver explains itself and is offered by the spec's schema", "[power]") {
  const Json schema = Json::parse(embedded::spec_schema);
  std::vector<std::string> registered;
  for (const PowerDriver& one : power_drivers()) registered.push_back(one.name);
  CHECK(schema["$defs"]["node"]["properties"]["power"]["properties"]["driver"]["enum"]
            .get<std::vector<std::string>>() == registered);
  for (const PowerDriver& one : power_drivers()) {
    CHECK(one.help.size() > 20);
    PowerTarget nowhere;
    // What switches nothing needs no place; a person knows the machine by its name.
    CHECK(one.make(nowhere).ok() != is_remote(description_of(one.name).by));
  }
}
