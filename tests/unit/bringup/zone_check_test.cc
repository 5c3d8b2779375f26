// The time zone of a spec is one of the host's, or the controller's.
#include "base/split.h"
#include "controller/bringup/whole_spec.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

// RFC 8536, version 2: one type, no change.
std::string utc_file() {
  std::string block = "TZif2" + std::string(15 + 4 * 4, '\0');
  block += std::string("\0\0\0\1\0\0\0\4", 8);
  block += std::string(6, '\0') + std::string("UTC\0", 4);
  return block + block + "\nUTC0\n";
}

const std::string kSpec = "cluster: c\ntime_zone: ";

}  // namespace

TEST_CASE("spec check: a time zone that this host does not have is an error at its key", "[cli]") {
  const TempDir root;
  const Files files(root.path(""));
  for (const char* zone : {"Etc/UTC", "Europe/Berlin"})
    root.write(std::string("usr/share/zoneinfo/") + zone, utc_file());
  root.write("usr/share/zoneinfo/leapseconds", "no zone");
  for (const char* spec : {"Europe/Berlin\n", "Etc/UTC\n"}) {
    CAPTURE(spec);
    const auto check = check_time_zone(kSpec + spec, files, ZonesOf::operator_host);
    CHECK_FALSE(check.error);
    CHECK_FALSE(check.warning);
  }
  for (const char* spec : {"Europe/Berln\n", "Europe\n", "leapseconds\n"}) {
    CAPTURE(spec);
    const auto check = check_time_zone(kSpec + spec, files, ZonesOf::operator_host);
    REQUIRE(check.error);
    CHECK(check.error->path == "time_zone");
    CHECK(check.error->line == 2);
    CHECK(check.error->column == 12);
    CHECK_FALSE(check.warning);
  }
  CHECK_FALSE(check_time_zone("cluster: c\n", files, ZonesOf::operator_host).error);
}

TEST_CASE("a zone that the controller does not have is its own, not this host's", "[bringup]") {
  const TempDir root;
  const Files files(root.path(""));
  const std::string text = kSpec + "Europe/Berln\n";
  const auto unchecked = check_time_zone(text, files, ZonesOf::controller);
  REQUIRE(unchecked.warning);
  CHECK(has(unchecked.warning->message, "the controller has no time zones"));
  root.write("usr/share/zoneinfo/Etc/UTC", utc_file());
  const auto wrong = check_time_zone(text, files, ZonesOf::controller);
  REQUIRE(wrong.error);
  CHECK(has(wrong.error->message, "no time zone of the controller"));
}

TEST_CASE("spec check: a host without time zones warns that it cannot check", "[cli]") {
  const TempDir root;
  const auto check = check_time_zone(kSpec + "Europe/Berln\n", Files(root.path("")), ZonesOf::operator_host);
  CHECK_FALSE(check.error);
  REQUIRE(check.warning);
  CHECK(check.warning->code == "time-zone-unchecked");
  CHECK(check.warning->line == 2);
  CHECK_FALSE(check_time_zone("cluster: c\n", Files(root.path("")), ZonesOf::operator_host).warning);
}
