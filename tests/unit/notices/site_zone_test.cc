// The zone by which quiet hours and daily lines go.
#include "controller/notices/service/site_zone.h"

#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

TEST_CASE("site zone: one that cannot be read is UTC, and says why until it is there", "[notices]") {
  const TempDir root;
  SiteZone zone{Files(root.path(""))};
  CHECK(zone.of("").at(0).minute == 0);  // no /etc/localtime
  CHECK(zone.error() == "");
  CHECK(zone.of("Asia/Tokio").at(0).minute == 0);
  CHECK(zone.error().find("Asia/Tokio") != std::string::npos);
  CHECK(zone.of("").at(0).minute == 0);
  CHECK(zone.error() == "");
  root.write("etc/localtime", "no zone");
  CHECK(zone.of("Etc/None").at(0).minute == 0);
  CHECK(zone.of("").at(0).minute == 0);
  CHECK(zone.error().find("/etc/localtime") != std::string::npos);
}
