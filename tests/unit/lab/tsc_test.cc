#include "lab/tsc.h"

#include "sys/os.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;
using namespace muster::lab;

TEST_CASE("the rate of the host's counter is measured once for each lab") {
  const TempDir folder;
  const LabDir dir(folder.path("."));
  const auto first = tsc_khz(dir);
  REQUIRE(first);
  CHECK(*first > 100'000);
  CHECK(*first < 100'000'000);
  REQUIRE(Files("/").write(dir.path("tsc-khz"), "2596135\n"));
  CHECK(tsc_khz(dir).value_or(0) == 2596135);
  for (const std::string wrong :
       {"", "\n", "0\n", "-5\n", "2596135", "2596135 \n", "fast\n", "99999999999999999999\n"}) {
    INFO(wrong);
    REQUIRE(Files("/").write(dir.path("tsc-khz"), wrong));
    const auto read = tsc_khz(dir);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == Code::corrupt);
  }
}
