#include "lab/bmc.h"

#include "base/digest.h"
#include "lab/fake_machine.h"
#include "tests/catch.h"

using namespace muster;
using namespace muster::lab;

namespace {

struct Bench {
  explicit Bench(const std::string& profile)
      : bmc(*find_profile(profile), {"n1", "uuid-1", "serial-1", "52:54:00:00:00:01", 1024, 1}, "admin", "pw",
            machine, [this] { return now; }) {}

  HttpResponse request(const std::string& method, const std::string& path, const Json& body = {},
                       Headers headers = {}) {
    HttpRequest request;
    request.method = method;
    request.path = request.target = path;
    request.headers = std::move(headers);
    if (!request.headers.count("X-Auth-Token") && !anonymous)
      request.headers["Authorization"] = "Basic " + to_base64("admin:pw");
    if (!body.is_null()) request.body = body.dump();
    return bmc.handle(request);
  }
  Json get(const std::string& path) {
    auto response = request("GET", path);
    REQUIRE(response.status == 200);
    return parse_json(response.body).value();
  }
  Json system() { return get(system_path); }
  int reset(const std::string& type) {
    return request("POST", system_path + "/Actions/ComputerSystem.Reset", {{"ResetType", type}}).status;
  }
  int once_pxe(Headers headers = {}) {
    return request("PATCH", boot_path,
                   {{"Boot",
                     {{"BootSourceOverrideEnabled", "Once"},
                      {"BootSourceOverrideTarget", "Pxe"},
                      {"BootSourceOverrideMode", "UEFI"}}}},
                   std::move(headers))
        .status;
  }
  // Past every lag and window.
  void settle() { now += kMinute; }

  TimeMs now = 1000000;
  FakeMachine machine;
  Bmc bmc;
  bool anonymous = false;
  std::string system_path = "/redfish/v1/Systems/1", boot_path = system_path;
};

std::string message_id(const HttpResponse& response) {
  return parse_json(response.body)
      .value()["error"]["@Message.ExtendedInfo"][0]["MessageId"]
      .get<std::string>();
}

}  // namespace

TEST_CASE("only the service root is shown without credentials") {
  Bench b("generic");
  b.anonymous = true;
  CHECK(b.request("GET", "/redfish/v1/").status == 200);
  CHECK(b.request("GET", "/redfish").status == 200);
  CHECK(b.request("GET", b.system_path).status == 401);
  CHECK(b.request("POST", b.system_path + "/Actions/ComputerSystem.Reset", {{"ResetType", "On"}}).status ==
        401);
  CHECK_FALSE(b.machine.running());
  CHECK(
      b.request("GET", b.system_path, {}, {{"Authorization", "Basic " + to_base64("admin:wrong")}}).status ==
      401);
}

TEST_CASE("Once is spent by the first boot, whatever caused it, and reads Disabled afterwards") {
  Bench b("generic");
  CHECK(b.once_pxe() == 204);
  CHECK(b.system()["Boot"]["BootSourceOverrideTarget"] == "Pxe");
  CHECK(b.reset("On") == 204);
  b.settle();
  CHECK(b.system()["Boot"]["BootSourceOverrideEnabled"] == "Once");  // firmware has not taken over yet
  REQUIRE(b.machine.boot());
  CHECK(b.system()["Boot"]["BootSourceOverrideEnabled"] == "Disabled");
  CHECK(b.system()["Boot"]["BootSourceOverrideTarget"] == "None");
  REQUIRE(b.machine.guest_reboot());
  CHECK(b.machine.boots() == std::vector<BootFirst>{BootFirst::network, BootFirst::disk});
}

TEST_CASE("an override set while the system runs holds for the system's own reboot") {
  Bench b("generic");
  CHECK(b.reset("On") == 204);
  REQUIRE(b.machine.boot());
  CHECK(b.once_pxe() == 204);
  REQUIRE(b.machine.guest_reboot());
  REQUIRE(b.machine.guest_reboot());
  CHECK(b.machine.boots() == std::vector<BootFirst>{BootFirst::disk, BootFirst::network, BootFirst::disk});
}

TEST_CASE("Continuous holds for every boot until it is disabled") {
  Bench b("generic");
  CHECK(b.request(
             "PATCH", b.system_path,
             {{"Boot", {{"BootSourceOverrideEnabled", "Continuous"}, {"BootSourceOverrideTarget", "Pxe"}}}})
            .status == 204);
  b.reset("On");
  b.machine.boot();
  b.machine.guest_reboot();
  CHECK(b.request("PATCH", b.system_path, {{"Boot", {{"BootSourceOverrideEnabled", "Disabled"}}}}).status ==
        204);
  b.machine.guest_reboot();
  CHECK(b.machine.boots() == std::vector<BootFirst>{BootFirst::network, BootFirst::network, BootFirst::disk});
}

TEST_CASE("the old power state is shown for a while after the action was accepted") {
  Bench b("generic");
  CHECK(b.reset("On") == 204);
  CHECK(b.machine.running());
  CHECK(b.system()["PowerState"] == "Off");
  b.settle();
  CHECK(b.system()["PowerState"] == "On");
  CHECK(b.reset("ForceOff") == 204);
  CHECK(b.system()["PowerState"] == "On");
  b.settle();
  CHECK(b.system()["PowerState"] == "Off");
  b.machine.set_dead(true);
  CHECK(b.reset("On") == 204);
  b.settle();
  CHECK(b.system()["PowerState"] == "Off");
}

TEST_CASE("a graceful shutdown is a request that the system may ignore") {
  Bench b("generic");
  b.reset("On");
  b.settle();
  b.machine.set_listens(false);
  CHECK(b.reset("GracefulShutdown") == 204);
  b.settle();
  CHECK(b.system()["PowerState"] == "On");
  b.machine.set_listens(true);
  CHECK(b.reset("GracefulShutdown") == 204);
  CHECK(b.system()["PowerState"] == "Off");
}

TEST_CASE("unknown properties, values and actions are refused and change nothing") {
  Bench b("generic");
  const auto patch = [&](const Json& boot) { return b.request("PATCH", b.system_path, {{"Boot", boot}}); };
  CHECK(message_id(patch({{"BootSourceOverrideTarget", "Toaster"}, {"BootSourceOverrideEnabled", "Once"}})) ==
        "Base.1.13.PropertyValueNotInList");
  CHECK(message_id(patch({{"BootSource", "Pxe"}})) == "Base.1.13.PropertyUnknown");
  CHECK(message_id(patch({{"BootSourceOverrideTarget", 5}})) == "Base.1.13.PropertyValueTypeError");
  CHECK(message_id(patch({{"BootSourceOverrideTarget", "Pxe"}})) == "Base.1.13.PropertyMissing");
  CHECK(b.request("PATCH", b.system_path, {{"AssetTag", "x"}}).status == 400);
  CHECK(b.system()["Boot"]["BootSourceOverrideEnabled"] == "Disabled");
  CHECK(b.reset("Bogus") == 400);
  CHECK(b.request("POST", b.system_path + "/Actions/ComputerSystem.Reset", Json::object()).status == 400);
  CHECK(b.request("POST", b.system_path + "/Actions/ComputerSystem.Reset").status == 400);
  CHECK(b.reset("ForceRestart") == 409);  // it is off
  CHECK_FALSE(b.machine.running());
  CHECK(b.request("DELETE", b.system_path).status == 405);
  CHECK(b.request("GET", "/redfish/v1/Systems/2").status == 404);
}

TEST_CASE("a wrong ETag is 412 and an asterisk or the right one passes") {
  Bench b("generic");
  CHECK(b.once_pxe({{"If-Match", "\"0123456789ab\""}}) == 412);
  CHECK(b.system()["Boot"]["BootSourceOverrideEnabled"] == "Disabled");
  const auto tag = b.request("GET", b.system_path).headers.at("ETag");
  CHECK(b.once_pxe({{"If-Match", tag}}) == 204);
  CHECK(b.once_pxe({{"If-Match", tag}}) == 412);  // the resource changed with the first write
  CHECK(b.once_pxe({{"If-Match", "*"}}) == 204);
}

TEST_CASE("dgx-h100: settings object, mandatory ETag, the full triple, reset values behind ActionInfo") {
  Bench b("dgx-h100");
  b.system_path = "/redfish/v1/Systems/DGX";
  b.boot_path = b.system_path + "/SD";
  const auto system = b.system();
  CHECK(system["@Redfish.Settings"]["SettingsObject"]["@odata.id"] == b.boot_path);
  CHECK_FALSE(system["Actions"]["#ComputerSystem.Reset"].contains("ResetType@Redfish.AllowableValues"));
  const auto info =
      b.get(system["Actions"]["#ComputerSystem.Reset"]["@Redfish.ActionInfo"].get<std::string>());
  CHECK(info["Parameters"][0]["AllowableValues"].size() == 4);
  CHECK(b.reset("PowerCycle") == 400);

  CHECK(b.once_pxe() == 428);
  const auto tag = b.request("GET", b.boot_path).headers.at("ETag");
  b.boot_path = b.system_path;
  CHECK(b.once_pxe({{"If-Match", "*"}}) == 400);  // not on the system itself
  b.boot_path = b.system_path + "/SD";
  CHECK(b.request("PATCH", b.boot_path,
                  {{"Boot", {{"BootSourceOverrideEnabled", "Once"}, {"BootSourceOverrideTarget", "Pxe"}}}},
                  {{"If-Match", tag}})
            .status == 400);
  CHECK(b.once_pxe({{"If-Match", tag}}) == 204);
  CHECK(b.get(b.boot_path)["Boot"]["BootSourceOverrideTarget"] == "Pxe");
  CHECK(b.system()["Boot"]["BootSourceOverrideTarget"] == "None");
  CHECK(b.reset("On") == 204);
  CHECK(b.system()["PowerState"] == "PoweringOn");
  b.machine.boot();
  CHECK(b.machine.boots() == std::vector<BootFirst>{BootFirst::network});
  CHECK(b.get(b.boot_path)["Boot"]["BootSourceOverrideEnabled"] == "Disabled");
}

TEST_CASE(
    "dgx-h100, gb200: the baseboard is a second system that cannot be reset and cannot be read while the "
    "host is off") {
  for (const auto& [profile, id] : {std::pair("dgx-h100", "DGX"), std::pair("gb200", "System_0")}) {
    Bench b(profile);
    b.system_path = std::string("/redfish/v1/Systems/") + id;
    const std::string board = "/redfish/v1/Systems/HGX_Baseboard_0";
    CHECK(b.get("/redfish/v1/Systems")["Members"].size() == 2);
    CHECK(b.request("GET", board).status == 503);
    CHECK(b.reset("On") == 204);
    CHECK_FALSE(b.get(board).contains("Actions"));
    CHECK(b.request("POST", board + "/Actions/ComputerSystem.Reset", {{"ResetType", "ForceOff"}}).status !=
          204);
    CHECK(b.machine.running());
    CHECK(b.reset("ForceOff") == 204);
    CHECK(b.request("GET", board).status == 503);
  }
}

TEST_CASE("hpe: no boot override in the power-on self test, and the mode is not written") {
  Bench b("hpe");
  const Json pair = {{"Boot", {{"BootSourceOverrideEnabled", "Once"}, {"BootSourceOverrideTarget", "Pxe"}}}};
  CHECK(b.once_pxe() == 400);
  CHECK(b.request("PATCH", b.system_path, pair).status == 204);
  CHECK(b.reset("On") == 204);
  const auto refused = b.request("PATCH", b.system_path, pair);
  CHECK(refused.status == 400);
  CHECK(message_id(refused) == "iLO.2.15.UnableToModifyDuringSystemPOST");
  b.settle();
  CHECK(b.request("PATCH", b.system_path, pair).status == 204);
  REQUIRE(b.machine.guest_reboot());
  CHECK(b.request("PATCH", b.system_path, pair).status == 400);
  CHECK(b.reset("ForceOff") == 204);
  CHECK(b.request("PATCH", b.system_path, pair).status == 204);
}

TEST_CASE("supermicro: three failed logins lock the account for a while, for the right password, too") {
  Bench b("supermicro");
  b.anonymous = true;
  const auto look = [&](const std::string& password) {
    return b.request("GET", b.system_path, {}, {{"Authorization", "Basic " + to_base64("admin:" + password)}})
        .status;
  };
  CHECK(look("wrong") == 401);
  CHECK(look("wrong") == 401);
  CHECK(look("pw") == 200);  // the count starts over
  for (int i = 0; i < 3; ++i) CHECK(look("wrong") == 401);
  CHECK(look("pw") == 401);
  CHECK(b.bmc.failed_logins() == 5);
  b.now += 5 * kMinute;
  CHECK(look("pw") == 200);
}

TEST_CASE("dell: power-on is refused for a while after power-off, and so is the state it is in") {
  Bench b("dell");
  b.system_path = "/redfish/v1/Systems/System.Embedded.1";
  CHECK(b.reset("ForceOff") == 409);
  CHECK(b.reset("On") == 204);
  b.settle();
  CHECK(b.reset("On") == 409);
  CHECK(b.reset("ForceOff") == 204);
  b.now += 3 * kSecond;
  CHECK(b.reset("On") == 409);
  CHECK_FALSE(b.machine.running());
  b.settle();
  CHECK(b.reset("On") == 204);
  CHECK(b.machine.running());
}

TEST_CASE("supermicro: Pxe reads back as UefiBootNext, resets are tasks that vanish") {
  Bench b("supermicro");
  CHECK(b.once_pxe() == 204);
  CHECK(b.system()["Boot"]["BootSourceOverrideTarget"] == "UefiBootNext");
  auto response = b.request("POST", b.system_path + "/Actions/ComputerSystem.Reset", {{"ResetType", "On"}});
  REQUIRE(response.status == 202);
  const auto monitor = response.headers.at("Location");
  CHECK(b.request("GET", monitor).status == 202);
  b.now += 2 * kSecond;
  CHECK(b.request("GET", monitor).status == 204);
  b.settle();
  CHECK(b.request("GET", monitor).status == 404);
  b.machine.boot();
  CHECK(b.machine.boots() == std::vector<BootFirst>{BootFirst::network});
}

TEST_CASE("sessions are few, carry a token, and end when idle or deleted") {
  Bench b("dgx-h100");
  const std::string sessions = "/redfish/v1/SessionService/Sessions", managers = "/redfish/v1/Managers";
  const auto login = [&](const std::string& password) {
    return b.request("POST", sessions, {{"UserName", "admin"}, {"Password", password}});
  };
  CHECK(login("wrong").status == 401);
  b.anonymous = true;
  auto session = login("pw");
  REQUIRE(session.status == 201);
  const auto token = session.headers.at("X-Auth-Token");
  CHECK(b.request("GET", managers, {}, {{"X-Auth-Token", token}}).status == 200);
  CHECK(b.request("GET", managers, {}, {{"X-Auth-Token", "forged"}}).status == 401);
  for (int i = 1; i < find_profile("dgx-h100")->session_limit; ++i) CHECK(login("pw").status == 201);
  CHECK(login("pw").status == 503);
  CHECK(b.request("DELETE", session.headers.at("Location"), {}, {{"X-Auth-Token", token}}).status == 204);
  CHECK(b.request("GET", managers, {}, {{"X-Auth-Token", token}}).status == 401);
  const auto second = login("pw").headers.at("X-Auth-Token");
  b.now += 20 * kSecond;
  CHECK(b.request("GET", managers, {}, {{"X-Auth-Token", second}}).status == 200);
  b.now += 29 * kSecond;
  CHECK(b.request("GET", managers, {}, {{"X-Auth-Token", second}}).status == 200);
  b.now += 31 * kSecond;
  CHECK(b.request("GET", managers, {}, {{"X-Auth-Token", second}}).status == 401);
}

TEST_CASE("a failing BMC answers 503 to everything until its time is over") {
  Bench b("generic");
  b.bmc.fail_until(b.now + 5 * kSecond);
  auto response = b.request("GET", "/redfish/v1");
  CHECK(response.status == 503);
  CHECK(response.headers.at("Retry-After") == "2");
  CHECK(b.reset("On") == 503);
  CHECK_FALSE(b.machine.running());
  b.now += 5 * kSecond;
  CHECK(b.reset("On") == 204);
}

std::set<std::string> links_in(const Json& json) {
  std::set<std::string> links;
  if (!json.is_structured()) return links;
  for (const auto& [key, value] : json.items())
    if (value.is_structured())
      links.merge(links_in(value));
    else if (key == "@odata.id" || key.find("ActionInfo") != std::string::npos)
      links.insert(value.get<std::string>());
  return links;
}

TEST_CASE("every link that a BMC shows leads somewhere, in every profile") {
  for (const auto& profile : bmc_profiles()) {
    Bench b(profile.name);
    b.machine.start();  // while the host is off not everything can be read
    std::map<std::string, bool> seen = {{"/redfish/v1", false}};
    for (bool more = true; more;) {
      more = false;
      for (auto& [path, done] : std::map<std::string, bool>(seen)) {
        if (done) continue;
        seen[path] = more = true;
        INFO(profile.name << " " << path);
        const auto body = b.request("GET", path);
        REQUIRE(body.status == 200);
        for (const auto& link : links_in(parse_json(body.body).value())) seen.emplace(link, false);
      }
    }
    CHECK(seen.size() >= 9);
  }
}
