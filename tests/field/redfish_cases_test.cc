// Field cases of Redfish: passwords that are right and refused, and bytes that no JSON has. Orders:
// redfish_orders_test.cc; where things really are: redfish_places_test.cc.
#include <zlib.h>

#include "controller/power/bmc_json.h"
#include "tests/field/redfish_bench.h"

namespace muster::tests {
namespace {

std::string packed(const std::string& text) {
  z_stream stream = {};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);  // 16: as gzip
  std::string in = text, out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// What the system shows is replaced byte by byte: "QEMU" is its manufacturer.
void maker(FieldBmc& bmc, const std::string& bytes) {
  bmc.after = [bytes](const HttpRequest& request, HttpResponse& response) {
    if (request.path != "/redfish/v1/Systems/1") return;
    response.body.replace(response.body.find("QEMU"), 4, bytes);
  };
}

constexpr const char* kSessions = "POST /redfish/v1/SessionService/Sessions";

}  // namespace

// ---- passwords

FIELD_CASE("redfish-401-once: one request of the first call") {
  FieldBmc bmc("generic");
  int times = 1;
  DurationMs lasts = kMinute;
  SECTION("one request") {}
  SECTION("for eight seconds, while the BMC starts") {
    times = 1000;
    lasts = 8 * kSecond;
  }
  const TimeMs until = bmc.clock + lasts;
  for (const char* path : {"/Systems", "/Systems/1"})
    bmc.rule({.method = "GET",
              .end_of_path = path,
              .answer = field_answer("redfish-401-once"),
              .times = times,
              .until = until});
  CHECK(bmc.power()->state(kCall).ok());
  CHECK(bmc.refusals == 0);
}

FIELD_CASE("redfish-401-once: a netboot under way goes on") {
  FieldBmc bmc("generic");
  bmc.starts_on();
  bmc.rule({.method = "GET",
            .end_of_path = "/Systems/1",
            .answer = field_answer("redfish-401-once"),
            .times = 1,
            .after = "POST"});
  CHECK(is_ok(boot_from_network(*bmc.power(), kCall)));
  CHECK(bmc.machine.running());
  CHECK(bmc.boots() == "dn");
  CHECK(bmc.refusals == 0);
}

FIELD_CASE("redfish-401-once: what another call knows counts") {
  FieldBmc bmc("generic");
  FieldService service(bmc);
  REQUIRE(is_ok(service.state()));
  bmc.starts_on();
  SECTION("it is refused once") {
    bmc.rule(
        {.method = "GET", .end_of_path = "/Systems", .answer = field_answer("redfish-401-once"), .times = 1});
    CHECK(is_ok(service.state()));
  }
  SECTION("twice: not for good, and no third login within ten minutes") {
    for (const auto& [method, path] : {std::pair("GET", "/Systems"), std::pair("POST", "/Sessions")})
      bmc.rule({.method = method,
                .end_of_path = path,
                .answer = field_answer("redfish-401-once"),
                .until = bmc.clock + 2 * kMinute});
    const long logins = bmc.count(kSessions);
    for (int i = 0; i < 3; ++i) {
      const Status netboot = service.netboot();
      REQUIRE_FALSE(netboot.ok());
      CHECK(netboot.error().code == Code::unavailable);
    }
    CHECK(bmc.count(kSessions) == logins + 1);  // and one by Basic
    CHECK(bmc.machine.running());
    bmc.clock += 10 * kMinute;
    CHECK(is_ok(service.netboot()));
    CHECK(bmc.boots() == "dn");
  }
}

FIELD_CASE("redfish-401-once: a wrong password is two failed logins in ten minutes, whatever the request") {
  for (const char* name : {"generic", "supermicro", "dgx-h100"}) {
    INFO(name);
    FieldBmc bmc(name);
    bmc.starts_on();
    bmc.target.password = "wrong";
    FieldService service(bmc);
    for (const Status& status : {service.state(), service.netboot(), service.off(), service.state()}) {
      REQUIRE_FALSE(status.ok());
      CHECK(status.error().code == Code::denied);
    }
    CHECK(bmc.bmc().failed_logins() == 2);
    CHECK(bmc.machine.running());
  }
}

FIELD_CASE("redfish-401-once: a privilege that is missing once") {
  FieldBmc bmc("generic");
  const auto refused = lab::redfish_error(403, "InsufficientPrivilege", "no");
  bmc.rule({.method = "POST", .end_of_path = "ComputerSystem.Reset", .answer = refused, .times = 1});
  CHECK(is_ok(bmc.power()->on(kCall)));
  CHECK(bmc.machine.running());
  SECTION("and one that is missing for good ends it, without failed logins") {
    bmc.rule({.method = "POST", .end_of_path = "ComputerSystem.Reset", .answer = refused});
    const Status off = bmc.power()->off(kCall, false);
    REQUIRE_FALSE(off.ok());
    CHECK(off.error().code == Code::denied);
    CHECK(bmc.refusals == 0);
  }
}

FIELD_CASE("redfish-401-fresh-session") {
  auto sessions_only = profile("generic");
  sessions_only.basic = false;
  FieldBmc bmc(sessions_only);
  bmc.rule({.method = "GET",
            .end_of_path = "/Systems/1",
            .answer = field_answer("redfish-401-fresh-session"),
            .times = 2});
  CHECK(bmc.power()->state(kCall).ok());
  CHECK(bmc.refusals == 0);
}

FIELD_CASE("redfish-401-sessions-full") {
  FieldBmc bmc("generic");
  bmc.rule({.method = "GET",
            .end_of_path = "/Systems",
            .answer = field_answer("redfish-401-sessions-full"),
            .times = 1});
  bmc.rule({.method = "POST",
            .end_of_path = "/Sessions",
            .answer = field_answer("redfish-401-sessions-full", "full.json")});
  CHECK(bmc.power()->state(kCall).ok());
  CHECK(bmc.refusals == 0);
}

FIELD_CASE("redfish-sessions-full") {
  auto sessions_only = profile("dell");
  sessions_only.basic = false;
  FieldBmc bmc(sessions_only);
  bmc.rule({.method = "POST",
            .end_of_path = "/Sessions",
            .answer = field_answer("redfish-sessions-full"),
            .times = 2});
  CHECK(bmc.power()->state(kCall).ok());
  CHECK(bmc.refusals == 0);
}

// ---- bytes

FIELD_CASE("redfish-gzip") {
  FieldBmc bmc("generic");
  std::string encoding = "gzip";
  SECTION("said in the header") {}
  SECTION("not said") { encoding.clear(); }
  bmc.after = [encoding](const HttpRequest& request, HttpResponse& response) {
    if (request.path != "/redfish/v1/") return;
    response.body = packed(response.body);
    if (!encoding.empty()) response.headers["Content-Encoding"] = encoding;
  };
  CHECK(bmc.power()->state(kCall).ok());
}

FIELD_CASE("redfish-gzip: one that unpacks to more than is taken is not read") {
  const std::string text = "{\"a\":\"" + std::string(5 << 20, 'x') + "\"}";
  CHECK(parse_bmc_json(packed(text), "gzip", 6 << 20).ok());
  CHECK_FALSE(parse_bmc_json(packed(text), "gzip", 4 << 20).ok());
  CHECK_FALSE(parse_bmc_json(packed(text).substr(0, 100), "gzip", 6 << 20).ok());
}

FIELD_CASE("redfish-bytes-not-utf8") {
  FieldBmc bmc("generic");
  SECTION("bytes of all ones") { maker(bmc, "\xff\xff\xff\xff"); }
  SECTION("a character that is cut short") { maker(bmc, "Ex\xc3"); }
  SECTION("control characters") { maker(bmc, std::string("E\x01\x02\0x", 5)); }
  const auto found = bmc.power()->describe(kCall);
  REQUIRE(found.ok());
  CHECK((*found)["serial"] == "SN-1");
  CHECK((*found)["power"] == "off");
}

FIELD_CASE("redfish-bytes-not-utf8: what is right stays as it is") {
  const std::string right = R"({"a":"é \u00e9 \" \\ 日本","b":[1,2]})";
  CHECK(*parse_bmc_json(right, "", 1000) == Json::parse(right));
  CHECK(*parse_bmc_json("{\"a\":\"é\\\"\xff\",\"b\":\"x\"}", "", 1000) ==
        Json({{"a", "é\"\xef\xbf\xbd"}, {"b", "x"}}));
}

FIELD_CASE("redfish-bytes-not-utf8: valid JSON controls no terminal either") {
  CHECK(*parse_bmc_json(R"({"a":"\u001b[2J\u009bm\u202e"})", "", 1000) == Json({{"a", " [2J m "}}));
}

FIELD_CASE("redfish-bare-cr") {
  FieldBmc bmc("generic");
  maker(bmc, "Maker\r\n");
  CHECK(bmc.power()->state(kCall).ok());
}

}  // namespace muster::tests
