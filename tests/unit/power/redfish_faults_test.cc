// BMCs that misbehave as real ones do, and the driver that must get its order done all the same, or leave the
// machine alone.
#include "controller/power/redfish.h"

#include <algorithm>

#include "controller/power/redfish_client.h"
#include "controller/power/wrap.h"
#include "tests/fakes/bmc_bench.h"

using namespace muster;

namespace {

constexpr DurationMs kCall = kMinute;
constexpr const char* kOther = "99999999-9abc-def0-1234-56789abcdef0";

std::unique_ptr<Power> driver(BmcBench& bench) { return make_redfish(bench.target, bench.waiter()); }
std::unique_ptr<Power> retrying(BmcBench& bench) { return with_retries(driver(bench), bench.waiter(), 7); }

lab::BmcProfile profile(const std::string& name) { return *lab::find_profile(name); }

lab::BmcProfile sessions_only(lab::BmcProfile p = profile("generic")) {
  p.basic = false;
  return p;
}

std::optional<HttpResponse> refuse(int status, const std::string& id) {
  return lab::redfish_error(status, id, "no");
}

long count(const BmcBench& bench, const std::string& what) {
  return std::count_if(bench.seen.begin(), bench.seen.end(),
                       [&](const auto& one) { return one.starts_with(what); });
}

std::string nested(size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

bool is_ok(const Status& status) {
  UNSCOPED_INFO((status.ok() ? "ok" : status.error().message));
  return status.ok();
}

// A chassis with two nodes behind one BMC: Systems/1 is the bench's machine, Systems/2 another that can be
// reset as well.
struct TwoNodes {
  explicit TwoNodes(BmcBench& bench) {
    bench.before = [this](const HttpRequest& request) -> std::optional<HttpResponse> {
      if (request.path == "/redfish/v1/Systems")
        return HttpResponse::json(
            200,
            R"({"Members":[{"@odata.id":"/redfish/v1/Systems/2"},{"@odata.id":"/redfish/v1/Systems/1"}]})");
      if (request.path != "/redfish/v1/Systems/2") return std::nullopt;
      if (requested++ < refusals) return answer;
      return HttpResponse::json(
          200, std::string(R"({"PowerState":"On","UUID":")") + kOther +
                   R"(","Actions":{"#ComputerSystem.Reset":{"target":"/redfish/v1/Systems/2/Reset"}}})");
    };
  }
  int requested = 0, refusals = 0;
  HttpResponse answer = lab::redfish_error(503, "ServiceTemporarilyUnavailable", "later");
};

}  // namespace

// ---- members that cannot be read

TEST_CASE("redfish: a baseboard that is away while the host is off does not stand in the way", "[power]") {
  for (const char* name : {"dgx-h100", "gb200"}) {
    INFO(name);
    for (const char* uuid : {"", BmcBench::kUuid}) {
      BmcBench bench(name);
      bench.target.expected_uuid = uuid;
      CHECK(*driver(bench)->state(kCall) == PowerState::off);
      CHECK(driver(bench)->describe(kCall).ok());
      CHECK(is_ok(boot_from_network(*driver(bench), kCall)));
      CHECK(bench.machine.running());
      CHECK(is_ok(driver(bench)->off(kCall, false)));
      CHECK(is_ok(driver(bench)->on(kCall)));
      CHECK(bench.boots() == "nd");
    }
  }
}

TEST_CASE("redfish: with a known UUID nothing but the node's own system is read", "[power]") {
  BmcBench bench("dgx-h100");
  bench.target.expected_uuid = BmcBench::kUuid;
  CHECK(driver(bench)->state(kCall).ok());
  CHECK(count(bench, "GET /redfish/v1/Systems/HGX_Baseboard_0") == 0);
}

TEST_CASE("redfish: what is left over beside an unreadable system is not taken for the node's machine",
          "[power]") {
  BmcBench bench("generic");
  TwoNodes nodes(bench);
  SECTION("it answers at the next request, and can be reset as well") {
    nodes.refusals = 1;
    CHECK(driver(bench)->on(kCall).error().code == Code::invalid);
  }
  SECTION("it gives no answer that can be read") {
    nodes.refusals = 1000;
    nodes.answer = HttpResponse::text(200, std::string(5 << 20, ' '));
    CHECK_FALSE(driver(bench)->on(kCall).ok());
  }
  SECTION("the one left over shows another machine's UUID: ours may be the other") {
    nodes.refusals = 1000;
    bench.target.expected_uuid = kOther;
    CHECK(driver(bench)->on(kCall).error().code == Code::unavailable);
  }
  CHECK_FALSE(bench.machine.running());
  CHECK(count(bench, "POST") == 0);
  CHECK(count(bench, "PATCH") == 0);
}

TEST_CASE("redfish: of two systems the one with the node's UUID is taken, though the other cannot be read",
          "[power]") {
  BmcBench bench("generic");
  TwoNodes nodes(bench);
  nodes.refusals = 1000;
  bench.target.expected_uuid = BmcBench::kUuid;
  SECTION("503") {}
  SECTION("404") { nodes.answer = lab::redfish_error(404, "ResourceMissingAtURI", "gone"); }
  SECTION("no JSON") { nodes.answer = HttpResponse::text(200, "<html>"); }
  CHECK(is_ok(driver(bench)->on(kCall)));
  CHECK(bench.machine.running());
}

TEST_CASE("redfish: where no system can be read, that is the error, and it may pass", "[power]") {
  BmcBench bench("generic");
  int left = 2;
  bench.before = [&](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.path == "/redfish/v1/Systems/1" && left-- > 0) return refuse(404, "ResourceMissingAtURI");
    return std::nullopt;
  };
  CHECK(driver(bench)->state(kCall).error().code == Code::unavailable);
  CHECK(retrying(bench)->state(kCall).ok());
}

// ---- answers that are a danger

TEST_CASE("redfish: an answer that is nested without end does no harm", "[power]") {
  BmcBench bench("generic");
  const std::string deep = R"({"error":{"@Message.ExtendedInfo":)" + nested(100000) + "}}";
  SECTION("in an error") {
    bench.before = [&](const HttpRequest&) { return HttpResponse::json(400, deep); };
    const auto state = driver(bench)->state(kCall);
    REQUIRE_FALSE(state.ok());
    CHECK(state.error().code == Code::invalid);
  }
  SECTION("in a refusal of the order") {
    bench.before = [&](const HttpRequest& request) -> std::optional<HttpResponse> {
      if (request.method == "POST") return HttpResponse::json(409, deep);
      return std::nullopt;
    };
    CHECK(driver(bench)->on(kCall).error().code == Code::unavailable);
  }
  SECTION("in a resource") {
    bench.before = [&](const HttpRequest&) { return HttpResponse::json(200, deep); };
    CHECK_FALSE(driver(bench)->state(kCall).ok());
  }
}

TEST_CASE("redfish: an answer of more than 4 MiB is not taken", "[power]") {
  BmcBench bench("generic");
  const std::string large(5 << 20, ' ');
  SECTION("a resource, though its JSON is right") {
    bench.after = [&](const HttpRequest&, HttpResponse& response) { response.body += large; };
    CHECK(driver(bench)->state(kCall).error().code == Code::failed);
  }
  SECTION("the answer to an order that was carried out: looked at, not repeated") {
    bench.after = [&](const HttpRequest& request, HttpResponse& response) {
      if (request.method == "POST") response = HttpResponse::text(200, large);
    };
    CHECK(is_ok(retrying(bench)->on(kCall)));
    CHECK(count(bench, "POST") == 1);
  }
}

// ---- the order of a netboot

TEST_CASE("redfish: a netboot ends a power-on self test that would refuse the override", "[power]") {
  auto hpe = profile("hpe");
  hpe.post_time = 60 * kMinute;  // it loops
  BmcBench bench(hpe);
  bench.machine.start();
  bench.machine.boot();
  CHECK(retrying(bench)->boot_once_network(kCall).error().code == Code::unavailable);
  CHECK(is_ok(boot_from_network(*retrying(bench), kCall)));
  CHECK(bench.machine.running());
  CHECK(bench.boots() == "dn");
}

TEST_CASE("redfish: a netboot whose override fails leaves the machine off, and says so", "[power]") {
  BmcBench bench("generic");
  bench.machine.start();
  bench.before = [](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.method == "PATCH") return refuse(400, "PropertyNotWritable");
    return std::nullopt;
  };
  const Status status = boot_from_network(*driver(bench), kCall);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code == Code::invalid);
  CHECK(status.error().message.find("stays off") != std::string::npos);
  CHECK_FALSE(bench.machine.running());
  SECTION("asked again, it begins where it was") {
    bench.before = nullptr;
    CHECK(is_ok(boot_from_network(*driver(bench), kCall)));
    CHECK(bench.boots() == "n");
  }
}

// ---- odd answers while something is under way

TEST_CASE("redfish: after odd answers while an order is under way the request is repeated", "[power]") {
  BmcBench bench("dgx-h100");
  bench.target.expected_uuid = BmcBench::kUuid;
  std::optional<HttpResponse> odd;
  std::string after_method = "POST";
  SECTION("404") { odd = refuse(404, "ResourceMissingAtURI"); }
  SECTION("400") { odd = refuse(400, "GeneralError"); }
  SECTION("500") { odd = refuse(500, "InternalError"); }
  SECTION("an empty 200") { odd = HttpResponse::text(200, ""); }
  SECTION("half of the JSON") { odd = HttpResponse::text(200, R"({"PowerState":"O)"); }
  SECTION("too much") { odd = HttpResponse::text(200, std::string(5 << 20, ' ')); }
  SECTION("after the boot override") {
    odd = refuse(404, "ResourceMissingAtURI");
    after_method = "PATCH";
  }
  int left = 0;
  bench.before = [&](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.method == after_method) left = 3;
    if (request.method == "GET" && left > 0) {
      --left;
      return *odd;
    }
    return std::nullopt;
  };
  const auto power = driver(bench);
  CHECK(is_ok(after_method == "POST" ? power->on(kCall) : power->boot_once_network(kCall)));
  CHECK(left == 0);
}

TEST_CASE("redfish: a wait ends at once when another machine answers", "[power]") {
  BmcBench bench("generic");
  bench.target.expected_uuid = BmcBench::kUuid;
  bool swapped = false;
  bench.after = [&](const HttpRequest& request, HttpResponse& response) {
    swapped = swapped || request.method == "POST";
    if (swapped && request.path == "/redfish/v1/Systems/1")
      response.body.replace(response.body.find(BmcBench::kUuid), std::string(kOther).size(), kOther);
  };
  const TimeMs start = bench.clock;
  CHECK(driver(bench)->on(kCall).error().code == Code::denied);
  CHECK(bench.clock - start < kCall / 2);
}

// ---- sessions

TEST_CASE("redfish: a session that cannot be opened now is opened later", "[power]") {
  BmcBench bench(sessions_only());
  int left = 1;
  HttpResponse answer = lab::redfish_error(503, "ServiceTemporarilyUnavailable", "later");
  SECTION("the service starts") {}
  SECTION("the table is full, said with 503") {
    answer = lab::redfish_error(503, "SessionLimitExceeded", "full");
  }
  SECTION("the table is full, said with 400") {
    answer = lab::redfish_error(400, "SessionLimitExceeded", "full");
  }
  bench.before = [&](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.method == "POST" && request.path == "/redfish/v1/SessionService/Sessions" && left-- > 0)
      return answer;
    return std::nullopt;
  };
  const auto power = driver(bench);
  CHECK(power->on(kCall).error().code == Code::unavailable);
  CHECK(is_ok(power->on(kCall)));
  CHECK(bench.refusals == 0);
}

TEST_CASE("redfish: a session that the BMC forgot is opened again, also in the middle of an order",
          "[power]") {
  SECTION("idle for too long") {
    auto forgetful = sessions_only();
    forgetful.session_idle = kSecond;
    forgetful.power_lag = 10 * kSecond;
    BmcBench bench(forgetful);
    CHECK(is_ok(driver(bench)->on(kCall)));
    CHECK(count(bench, "POST /redfish/v1/Systems/1/Actions/") == 1);
  }
  SECTION("restarted between looking and ordering, and again before the state is seen") {
    BmcBench bench(sessions_only());
    bench.before = [&](const HttpRequest& request) -> std::optional<HttpResponse> {
      if (request.path.find("/Actions/") == std::string::npos) return std::nullopt;
      auto answer = bench.bmc().handle(request);
      bench.bmc().forget_sessions();
      return answer;
    };
    bool first = true;
    bench.after = [&](const HttpRequest& request, HttpResponse&) {
      if (request.path == "/redfish/v1/Systems/1" && std::exchange(first, false))
        bench.bmc().forget_sessions();
    };
    CHECK(is_ok(driver(bench)->on(kCall)));
    CHECK(bench.machine.running());
    CHECK(bench.bmc().failed_logins() == 0);
    CHECK(count(bench, "DELETE /redfish/v1/SessionService/Sessions/") == 1);
  }
}

TEST_CASE("redfish: a session is given back", "[power]") {
  auto p = sessions_only();
  SECTION("whose address stands in the header") {}
  SECTION("whose address stands only in the body") { p.session_location = false; }
  BmcBench bench(p);
  for (int i = 0; i < p.session_limit + 1; ++i) CHECK(driver(bench)->state(kCall).ok());
  CHECK(count(bench, "DELETE /redfish/v1/SessionService/Sessions/") == p.session_limit + 1);
}

TEST_CASE("redfish: a BMC that shows its root only after a login is logged in to all the same", "[power]") {
  BmcBench bench(sessions_only());
  bench.before = [](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.path == "/redfish/v1/" && !request.headers.count("X-Auth-Token"))
      return refuse(401, "NoValidSession");
    return std::nullopt;
  };
  CHECK(driver(bench)->state(kCall).ok());
}

// ---- wrong passwords

TEST_CASE("redfish: a wrong password costs two failed logins, whatever the request", "[power]") {
  for (const auto& p : {profile("generic"), profile("supermicro"), profile("dgx-h100"), sessions_only()}) {
    INFO(p.name << (p.basic ? "" : ", sessions only"));
    BmcBench bench(p);
    bench.target.password = "wrong";
    const auto power = retrying(bench);
    CHECK(power->on(kCall).error().code == Code::denied);
    CHECK(power->state(kCall).error().code == Code::denied);
    CHECK(power->boot_once_network(kCall).error().code == Code::denied);
    // Where Basic is off, its refusal is counted by the driver, and not by the BMC.
    CHECK(bench.bmc().failed_logins() == (p.basic ? 2 : 1));
    CHECK(bench.refusals == 1);
  }
}

TEST_CASE("redfish: a refusal after the password was right is no wrong password", "[power]") {
  BmcBench bench("generic");
  const auto power = driver(bench);
  REQUIRE(power->state(kCall).ok());
  bool starting = true;
  int logins = 0;
  bench.before = [&](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (!starting) return std::nullopt;
    logins += request.headers.count("Authorization") > 0 || request.method == "POST";
    auto response = lab::redfish_error(401, "NoValidSession", "no");
    response.headers["WWW-Authenticate"] = "Basic realm=\"x\"";
    return response;
  };
  for (int i = 0; i < 3; ++i) CHECK(power->state(kCall).error().code == Code::unavailable);
  CHECK(bench.refusals == 0);
  CHECK(logins == 2);  // it may be wrong by now
  starting = false;
  bench.clock += 10 * kMinute;
  CHECK(power->state(kCall).ok());
}

TEST_CASE("redfish: of one login a wrong password costs one, and a BMC without Basic is no wrong password",
          "[power][doctor]") {
  for (const auto& p : {profile("generic"), sessions_only()}) {
    BmcBench bench(p);
    bench.target.one_login = true;
    CHECK(driver(bench)->state(kCall).ok());
    CHECK(bench.bmc().failed_logins() == 0);
    bench.target.password = "wrong";
    CHECK(driver(bench)->state(kCall).error().code == Code::denied);
    CHECK(bench.bmc().failed_logins() == 1);
    CHECK(bench.refusals == 0);  // one is not enough to try no more
  }
  BmcBench bench("generic");
  bench.before = [](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.method == "POST") return refuse(404, "ResourceMissingAtURI");
    return std::nullopt;
  };
  bench.target.one_login = true;
  CHECK(driver(bench)->state(kCall).ok());
}

TEST_CASE("redfish: one of many logins does not wait for a silent BMC as long as a call alone",
          "[power][doctor]") {
  BmcBench bench("generic");
  bench.target.one_login = GENERATE(false, true);
  std::vector<DurationMs> limits;
  const auto power = make_redfish(bench.target, bench.waiter(), [&limits](HttpClientOptions options) {
    limits.push_back(options.connect_timeout);
    return make_http_client(std::move(options));
  });
  CHECK(power->state(kCall).ok());
  CHECK(limits.size() >= 2);
  for (const DurationMs limit : limits) CHECK(limit == (bench.target.one_login ? 5 : 10) * kSecond);
}
