// Driver `ssh`: what it can is to say what it cannot.
#include "controller/power/in_band.h"

#include <algorithm>

#include "controller/power/describe/driver_description.h"
#include "tests/catch.h"

using namespace muster;

TEST_CASE("a node without a BMC cannot be switched, and the refusal says what is possible",
          "[power][kexec]") {
  const auto& drivers = power_drivers();
  const auto driver =
      std::find_if(drivers.begin(), drivers.end(), [](const PowerDriver& d) { return d.name == "ssh"; });
  REQUIRE(driver != drivers.end());
  CHECK(description_of(driver->name).by == Switch::agent);
  PowerTarget target;
  target.node = "gpu01";
  auto power = driver->make(target);
  REQUIRE(power.ok());
  CHECK((*power)->state(kSecond).value() == PowerState::unknown);
  for (const Status& refused :
       {(*power)->on(kSecond), (*power)->off(kSecond, false), (*power)->off(kSecond, true),
        (*power)->boot_once_network(kSecond), boot_from_network(**power, kSecond)}) {
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == Code::invalid);
    CHECK(refused.error().message.find("muster reimage gpu01") != std::string::npos);
  }
  CHECK((*power)->describe(kSecond).value()["switches"] == false);
}
