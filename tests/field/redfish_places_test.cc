// Field cases of Redfish: where lists, settings and overrides really are.
#include "tests/field/redfish_bench.h"

namespace muster::tests {

FIELD_CASE("redfish-actioninfo-404") {
  FieldBmc bmc("supermicro");
  bmc.starts_on();
  bmc.rule({.method = "GET",
            .end_of_path = "/ResetActionInfo",
            .answer = lab::redfish_error(404, "ResourceMissingAtURI", "not here")});
  CHECK(is_ok(bmc.power()->off(kCall, false)));
  CHECK_FALSE(bmc.machine.running());
}

FIELD_CASE("redfish-ami-future-state") {
  FieldBmc bmc("dgx-h100");
  bmc.shows("/redfish/v1/Systems/DGX", [](Json& system) { system.erase("@Redfish.Settings"); });
  SECTION("the resource that it names") {
    bmc.rule({.method = "PATCH",
              .end_of_path = "/Systems/DGX",
              .answer = field_answer("redfish-ami-future-state")});
    CHECK(is_ok(bmc.power()->boot_once_network(kCall)));
    CHECK(bmc.bmc().override_text() == "Once Pxe");
  }
  SECTION("one that is another system's is not written to") {
    bmc.rule({.method = "PATCH",
              .end_of_path = "/Systems/DGX",
              .answer = field_answer("redfish-ami-future-state", "elsewhere.json")});
    const Status once = bmc.power()->boot_once_network(kCall);
    REQUIRE_FALSE(once.ok());
    CHECK(once.error().code == Code::invalid);
    CHECK(bmc.count("PATCH /redfish/v1/Systems/HGX") == 0);
  }
}

FIELD_CASE("redfish-idrac10-readback") {
  auto idrac = profile("generic");
  idrac.settings_id = "Settings";
  FieldBmc bmc(idrac);
  const auto override_is = [](const char* enabled, const char* target) {
    return [=](Json& resource) {
      Json& boot = resource["Boot"];
      boot["BootSourceOverrideEnabled"] = enabled ? Json(enabled) : Json();
      boot["BootSourceOverrideTarget"] = target ? Json(target) : Json();
    };
  };
  bool takes = true;
  SECTION("the settings show nothing, the system does") {
    bmc.shows("/redfish/v1/Systems/1/Settings", override_is(nullptr, nullptr));
    bmc.shows("/redfish/v1/Systems/1", [&](Json& system) {
      if (bmc.requested("PATCH")) override_is("Once", "Pxe")(system);
    });
  }
  SECTION("the settings are spent at once") {
    bmc.shows("/redfish/v1/Systems/1/Settings", override_is("Disabled", "None"));
    bmc.shows("/redfish/v1/Systems/1", [&](Json& system) {
      if (bmc.requested("PATCH")) override_is("Once", "Pxe")(system);
    });
  }
  SECTION("the settings lose it, and the system shows that of the last boot") {
    takes = false;
    bmc.shows("/redfish/v1/Systems/1/Settings", override_is("Disabled", "None"));
    bmc.shows("/redfish/v1/Systems/1", override_is("Once", "Pxe"));
  }
  SECTION("neither shows it") {
    takes = false;
    bmc.shows("/redfish/v1/Systems/1/Settings", override_is(nullptr, nullptr));
  }
  const Status once = bmc.power()->boot_once_network(kCall);
  REQUIRE(once.ok() == takes);
  CHECK((takes || once.error().code == Code::failed));
}

FIELD_CASE("redfish-continuous") {
  FieldBmc bmc("generic");
  bmc.starts_on();
  bmc.shows("/redfish/v1/Systems/1", [&](Json& system) {
    if (bmc.requested("PATCH")) system["Boot"]["BootSourceOverrideEnabled"] = "Continuous";
  });
  CHECK(is_ok(boot_from_network(*bmc.power(), kCall)));
  CHECK(bmc.boots() == "dn");
}

FIELD_CASE("redfish-target-only") {
  FieldBmc bmc("generic");
  bmc.starts_on();
  bmc.rule({.method = "PATCH", .end_of_path = "/Systems/1", .answer = HttpResponse::json(200, "{}")});
  bmc.shows("/redfish/v1/Systems/1", [&](Json& system) {
    if (bmc.requested("PATCH")) system["Boot"]["BootSourceOverrideTarget"] = "Pxe";
  });
  const Status netboot = boot_from_network(*bmc.power(), kCall);
  REQUIRE_FALSE(netboot.ok());
  CHECK(netboot.error().code == Code::failed);
  CHECK_FALSE(bmc.machine.running());
}

}  // namespace muster::tests
