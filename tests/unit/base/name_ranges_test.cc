#include "base/name_ranges.h"

#include "controller/spec/spec.h"
#include "tests/catch.h"

using namespace muster;

TEST_CASE("name ranges: names are joined as the verbs take them", "[base]") {
  CHECK(names_in_ranges({"gpu02", "gpu01", "gpu03", "gpu07"}) == "gpu[01-03,07]");
  CHECK(names_in_ranges({"head"}) == "head");
  CHECK(names_in_ranges({"gpu9", "gpu10"}) == "gpu10,gpu9");
  CHECK(names_in_ranges({"login", "gpu01"}) == "gpu01,login");
  const auto back = expand_range("gpu[01-03,07]");
  REQUIRE(back.ok());
  CHECK(names_in_ranges(*back) == "gpu[01-03,07]");
}
