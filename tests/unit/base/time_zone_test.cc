// Time zones from files made here: RFC 8536, version 2, with and without a rule.
#include "base/time_zone.h"
#include "tests/catch.h"

using namespace muster;

namespace {

std::string number(int64_t value, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
  return out;
}

struct Jump {
  int64_t at, offset;
};

std::string block(const std::vector<Jump>& jumps, int bytes) {
  std::string out = "TZif2" + std::string(15, '\0');
  for (const size_t count : {size_t{0}, size_t{0}, size_t{0}, jumps.size(), jumps.size() + 1, size_t{4}})
    out += number(static_cast<int64_t>(count), 4);
  for (const Jump& jump : jumps) out += number(jump.at, bytes);
  for (size_t i = 0; i < jumps.size(); ++i) out += number(static_cast<int64_t>(i) + 1, 1);
  out += number(0, 4) + std::string(2, '\0');
  for (const Jump& jump : jumps) out += number(jump.offset, 4) + std::string(2, '\0');
  return out + std::string("UTC\0", 4);
}

std::string file(const std::vector<Jump>& jumps, const std::string& rule) {
  return block({}, 4) + block(jumps, 8) + "\n" + rule + "\n";
}

constexpr TimeMs at(int64_t seconds) { return seconds * kSecond; }

}  // namespace

TEST_CASE("time zone: summer time by the rule, also decades from now", "[base]") {
  const auto zone = TimeZone::read(file({{0, 3600}}, "CET-1CEST,M3.5.0,M10.5.0/3"));
  REQUIRE(zone.ok());
  CHECK(zone->offset(at(-5)) == 0);
  CHECK(zone->offset(at(1'767'225'600)) == 3600);  // 2026-01-01
  CHECK(zone->offset(at(1'774'745'999)) == 3600);  // 2026-03-29 00:59:59 UTC
  CHECK(zone->offset(at(1'774'746'000)) == 7200);
  CHECK(zone->offset(at(1'792'889'999)) == 7200);  // 2026-10-25 00:59:59 UTC
  CHECK(zone->offset(at(1'792'890'000)) == 3600);
  CHECK(zone->offset(at(2'540'239'200)) == 7200);       // 2050-06-30
  const LocalTime local = zone->at(at(1'782'856'800));  // 2026-06-30 22:00 UTC
  CHECK(local.day == 20635);                            // 2026-07-01
  CHECK(local.minute == 0);
}

TEST_CASE("time zone: the south, names in brackets, and hours west", "[base]") {
  const auto south = TimeZone::read(file({{0, 36000}}, "AEST-10AEDT,M10.1.0,M4.1.0/3"));
  REQUIRE(south.ok());
  CHECK(south->offset(at(1'767'225'600)) == 39600);
  CHECK(south->offset(at(1'782'864'000)) == 36000);  // 2026-07-01
  const auto half = TimeZone::read(file({{0, 16200}}, "<+0430>-4:30"));
  REQUIRE(half.ok());
  CHECK(half->offset(at(1'767'225'600)) == 16200);
  const auto west = TimeZone::read(file({{0, -18000}}, "EST5EDT,M3.2.0,M11.1.0"));
  REQUIRE(west.ok());
  CHECK(west->at(at(1'767'225'600)).minute == 19 * 60);
  CHECK(west->at(at(1'767'225'600)).day == 20453);  // still 2025
}

TEST_CASE("time zone: without a rule the last offset holds, and without a file it is UTC", "[base]") {
  const auto zone = TimeZone::read(file({{0, 3600}, {1000, 10800}}, ""));
  REQUIRE(zone.ok());
  CHECK(zone->offset(at(999)) == 3600);
  CHECK(zone->offset(at(1000)) == 10800);
  CHECK(zone->offset(at(2'000'000'000)) == 10800);
  CHECK(TimeZone().offset(at(1'782'864'000)) == 0);
  CHECK(TimeZone().at(-1).day == -1);
  CHECK(TimeZone().at(-1).minute == 24 * 60 - 1);
}

TEST_CASE("time zone: what is not one, or is cut anywhere, is an error", "[base]") {
  const std::string whole = file({{0, 3600}}, "CET-1CEST,M3.5.0,M10.5.0/3");
  const size_t rule = whole.find("CET");
  for (size_t size = 0; size < rule; ++size) {
    CAPTURE(size);
    CHECK_FALSE(TimeZone::read(std::string_view(whole).substr(0, size)).ok());
  }
  for (const char* wrong :
       {"CET", "CET-1CEST,M13.5.0,M10.5.0", "CET-1CEST,M3.5.0", "-1", "CET-1CEST,M3.5.0,M10.5.0/"}) {
    CAPTURE(wrong);
    CHECK(TimeZone::read(file({}, wrong)).error().code == Code::corrupt);
  }
  std::string huge = whole;
  huge.replace(20, 4, "\xff\xff\xff\xff");
  CHECK_FALSE(TimeZone::read(huge).ok());
}
