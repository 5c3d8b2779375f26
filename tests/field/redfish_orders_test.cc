// Field cases of Redfish: orders that were refused and are done, will be done later, or never.
#include "tests/field/redfish_bench.h"

namespace muster::tests {

FIELD_CASE("redfish-400-already-off") {
  FieldBmc bmc("generic");
  bmc.rule({.method = "POST",
            .end_of_path = "ComputerSystem.Reset",
            .answer = field_answer("redfish-400-already-off")});
  SECTION("switched off by another a moment ago: it still shows On") {
    const TimeMs shown_until = bmc.clock + 3 * kSecond;
    bmc.shows("/redfish/v1/Systems/1", [&, shown_until](Json& system) {
      if (bmc.clock < shown_until) system["PowerState"] = "On";
    });
    CHECK(is_ok(bmc.power()->off(30 * kSecond, false)));
    CHECK(bmc.count("POST") == 1);
  }
  SECTION("one that stays on is a refusal for good") {
    bmc.starts_on();
    const TimeMs start = bmc.clock;
    const Status off = bmc.power()->off(kCall, false);
    REQUIRE_FALSE(off.ok());
    CHECK(off.error().code == Code::invalid);
    CHECK(bmc.clock - start < 20 * kSecond);
    CHECK(bmc.count("POST") == 1);
  }
}

FIELD_CASE("redfish-409-62s") {
  auto idrac = profile("generic");
  idrac.conflict_after_off = 62 * kSecond;
  FieldBmc bmc(idrac);
  bmc.starts_on();
  FieldService service(bmc);
  SECTION("off, then on") {
    REQUIRE(is_ok(service.off()));
    CHECK_FALSE(bmc.machine.running());
    CHECK(is_ok(service.on()));
    CHECK(bmc.boots() == "dd");
  }
  SECTION("a netboot") {
    CHECK(is_ok(service.netboot()));
    CHECK(bmc.boots() == "dn");
  }
  CHECK(bmc.machine.running());
}

FIELD_CASE("redfish-idrac-not-ready") {
  FieldBmc bmc("dell");
  SECTION("it has just started, and reads nothing") {
    for (const char* path : {"/Systems", "/Systems/System.Embedded.1"})
      bmc.rule({.method = "GET",
                .end_of_path = path,
                .answer = field_answer("redfish-idrac-not-ready"),
                .until = bmc.clock + 8 * kSecond});
    CHECK(bmc.power()->state(kCall).ok());
  }
  SECTION("once, on the order") {
    bmc.rule({.method = "POST",
              .end_of_path = "ComputerSystem.Reset",
              .answer = field_answer("redfish-idrac-not-ready"),
              .times = 1});
    CHECK(is_ok(bmc.power()->on(kCall)));
    CHECK(bmc.machine.running());
  }
}

FIELD_CASE("redfish-ilo4-messageid") {
  FieldBmc bmc("hpe");
  bmc.rule({.method = "POST",
            .end_of_path = "ComputerSystem.Reset",
            .answer = field_answer("redfish-ilo4-messageid"),
            .times = 2});
  CHECK(is_ok(bmc.power()->on(kCall)));
  CHECK(bmc.machine.running());
  CHECK(bmc.count("POST") == 3);
}

FIELD_CASE("redfish-303-see-other") {
  FieldBmc bmc("supermicro");  // its orders are tasks
  bmc.starts_on();
  bmc.after = [](const HttpRequest& request, HttpResponse& response) {
    if (request.method == "POST" && response.status == 202) response.status = 303;
  };
  const auto power = bmc.power();
  CHECK(is_ok(power->off(kCall, false)));
  CHECK_FALSE(bmc.machine.running());
  CHECK(bmc.count("POST") == 1);
}

FIELD_CASE("redfish-rac0508") {
  FieldBmc bmc("dell");
  bmc.rule({.method = "PATCH",
            .end_of_path = "/Systems/System.Embedded.1",
            .answer = field_answer("redfish-rac0508"),
            .times = 2});
  CHECK(is_ok(bmc.power()->boot_once_network(kCall)));
  CHECK(bmc.bmc().override_text() == "Once Pxe");
}

FIELD_CASE("redfish-503-two-messages") {
  FieldBmc bmc("dell");
  bmc.rule({.method = "GET",
            .end_of_path = "/Systems/System.Embedded.1",
            .answer = field_answer("redfish-503-two-messages"),
            .until = bmc.clock + 20 * kSecond});
  CHECK(bmc.power()->state(kCall).ok());
}

}  // namespace muster::tests
