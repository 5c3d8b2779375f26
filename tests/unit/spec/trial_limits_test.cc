// Limits of a re-image in place, and the phases of playbooks for it.
#include "controller/spec/playbook.h"
#include "controller/spec/reader/parse_playbook.h"
#include "controller/spec/reader/parse_spec.h"
#include "controller/spec/units.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;

namespace {

ParsedSpec with_limits(const std::string& limits) {
  return parse_spec(std::string(muster::testing::kSpec) + "limits: { " + limits + " }\n");
}

}  // namespace

TEST_CASE("limits of a trial, of its jobs and of the writing beside them", "[spec]") {
  const ParsedSpec none = with_limits("boot: 10 min");
  CHECK(none.errors.empty());
  CHECK(none.spec.limits.trial == 2 * 60 * kMinute);
  CHECK(none.spec.limits.drain_timeout == 24 * 60 * kMinute);
  CHECK(none.spec.limits.image_write_rate == 0);
  const ParsedSpec all = with_limits("trial: 40 min, drain_timeout: 72 h, image_write_rate: 200 MB/s");
  CHECK(all.errors.empty());
  CHECK(all.spec.limits.trial == 40 * kMinute);
  CHECK(all.spec.limits.drain_timeout == 72 * 60 * kMinute);
  CHECK(all.spec.limits.image_write_rate == 200'000'000);
  CHECK(with_limits("image_write_rate: \"0\"").spec.limits.image_write_rate == 0);
}

TEST_CASE("limits of a trial that are a slip are refused with their place", "[spec]") {
  const std::pair<const char*, const char*> bad[] = {{"trial", "1 min"},
                                                     {"trial", "25 h"},
                                                     {"trial", "0"},
                                                     {"trial", "soon"},
                                                     {"drain_timeout", "30 s"},
                                                     {"drain_timeout", "0"},
                                                     {"drain_timeout", "1000 h"},
                                                     {"image_write_rate", "200 MB"},
                                                     {"image_write_rate", "5"},
                                                     {"image_write_rate", "10 kB/s"},
                                                     {"image_write_rate", "/s"},
                                                     {"image_write_rate", "-1 MB/s"},
                                                     {"image_write_rate", "1 Mbit/s"}};
  for (const auto& [key, value] : bad) {
    INFO(key << ": " << value);
    const ParsedSpec parsed = with_limits(std::string(key) + ": " + value);
    REQUIRE(parsed.errors.size() == 1);
    CHECK(parsed.errors[0].path == std::string("limits.") + key);
  }
}

TEST_CASE("limits of events", "[spec]") {
  const EventLimits none = with_limits("boot: 10 min").spec.limits.events;
  CHECK(none.per_second == 100);
  CHECK(none.bytes_per_day == 64 << 20);
  CHECK(none.size == 2 << 20);
  CHECK(none.keep == 90 * kDay);
  const ParsedSpec all =
      with_limits("events: { per_second: 20, bytes_per_day: 1 GiB, size: 512 KiB, keep: 14 d }");
  CHECK(all.errors.empty());
  CHECK(all.spec.limits.events.per_second == 20);
  CHECK(all.spec.limits.events.bytes_per_day == 1 << 30);
  CHECK(all.spec.limits.events.size == 512 << 10);
  CHECK(all.spec.limits.events.keep == 14 * kDay);
  const std::pair<const char*, const char*> bad[] = {
      {"per_second", "5"},       {"per_second", "20000"}, {"bytes_per_day", "10 kB"},
      {"bytes_per_day", "much"}, {"size", "1 KiB"},       {"size", "9 MiB"},
      {"keep", "1 h"},           {"keep", "4000 d"}};
  for (const auto& [key, value] : bad) {
    INFO(key << ": " << value);
    const ParsedSpec parsed = with_limits(std::string("events: { ") + key + ": " + value + " }");
    REQUIRE(parsed.errors.size() == 1);
    CHECK(parsed.errors[0].path == std::string("limits.events.") + key);
  }
}

TEST_CASE("a rate is a size per second", "[spec]") {
  CHECK(parse_rate("64 MiB/s").value() == 64 << 20);
  CHECK(parse_rate("1.5 GB/s").value() == 1'500'000'000);
  CHECK(parse_rate("0").value() == 0);
  for (const char* bad : {"", "200", "MB/s", "/s", "200 MB/min", "200 MB/s/s"}) CHECK(!parse_rate(bad).ok());
}

TEST_CASE("steps of phases pause and resume are read, and choose no nodes", "[playbook]") {
  const auto parsed = [](const std::string& phase, const std::string& more) {
    return parse_playbook("playbook: x\nsteps:\n  - name: one\n    phase: " + phase + "\n    module: file\n" +
                          more);
  };
  for (const char* phase : {"pause", "resume"}) {
    CHECK(parsed(phase, "").errors.empty());
    CHECK(parsed(phase, "").playbook.steps[0].phase == phase);
    CHECK(!parsed(phase, "    on: leader\n").errors.empty());
    CHECK(!parsed(phase, "    stage: 2\n").errors.empty());
  }
}
