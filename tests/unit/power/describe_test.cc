// The descriptions of the power drivers, held to the drivers, the schema and each other.
#include <set>
#include <string>

#include "base/json.h"
#include "controller/ports/power.h"
#include "controller/power/describe/driver_description.h"
#include "tests/catch.h"
#include "tests/source_dir.h"

using namespace muster;

namespace {

Json power_schema() {
  const auto schema = parse_json(text_of(source_dir() + "/schema/spec.schema.json"));
  REQUIRE(schema.ok());
  return schema->at("$defs").at("node").at("properties").at("power").at("properties");
}

}  // namespace

TEST_CASE("each registered power driver has one description, and each description a driver", "[power]") {
  std::multiset<std::string> described, registered;
  for (const DriverDescription& one : driver_descriptions()) described.emplace(one.name);
  for (const PowerDriver& one : power_drivers()) registered.insert(one.name);
  CHECK(described == registered);
  for (const DriverDescription& one : driver_descriptions()) CHECK(&description_of(one.name) == &one);
  CHECK(std::set<std::string>(described.begin(), described.end()).size() == described.size());
}

TEST_CASE("what a driver can do is what its description says", "[power]") {
  for (const PowerDriver& one : power_drivers()) {
    INFO(one.name);
    const DriverDescription& described = description_of(one.name);
    CHECK((one.reinstall != nullptr) == described.takes("install"));
    CHECK((one.reinstall != nullptr) == (described.by == Switch::provider));
    CHECK(described.takes("within") == (described.by == Switch::person));
    CHECK(described.takes("address") == (described.address != PowerAddress::none));
    CHECK(described.takes("pin") == !described.identity.empty());
    CHECK(described.takes("pin") == !described.pin_prefix.empty());
    CHECK(described.refusal.empty() == is_remote(described.by));
  }
  CHECK(can_netboot(Switch::bmc));
  CHECK(can_netboot(Switch::person));
  CHECK_FALSE(can_netboot(Switch::provider));
  CHECK_FALSE(can_netboot(Switch::agent));
}

TEST_CASE("a description names keys that the schema has, and no key twice", "[power]") {
  const Json keys = power_schema();
  std::set<std::string> used;
  for (const DriverDescription& one : driver_descriptions()) {
    INFO(one.name);
    std::multiset<std::string> own;
    for (const NeededKey& needed : one.needs) own.emplace(needed.name);
    for (const std::string_view key : one.allows) own.emplace(key);
    own.erase("");
    for (const std::string& key : own) {
      CHECK(keys.contains(key));
      CHECK(own.count(key) == 1);
    }
    used.insert(own.begin(), own.end());
  }
  CHECK(used.size() + 1 == keys.size());  // each key but `driver` is some driver's
}

TEST_CASE("a name that is no driver's counts as a BMC and takes only an address", "[power]") {
  for (const char* name : {"", "redfsh", "Redfish"}) {
    const DriverDescription& none = description_of(name);
    CHECK(none.name.empty());
    CHECK(none.by == Switch::bmc);
    CHECK(none.takes("address"));
    CHECK_FALSE(none.takes("secret"));
  }
}
