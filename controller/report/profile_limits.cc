// Checks that the limits of a profile's metrics are well formed.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "controller/report/drive_floors.h"
#include "controller/report/expected.h"
#include "controller/report/verdict.h"

namespace muster {

Status check_limit(const std::string& metric, const Json& expectation) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double min = -kInfinity, max = kInfinity, low = 0, high = 0, least = 0;
  std::map<std::string, double> ratios = {
      {"fleet_min_ratio", 1}, {"history_min_ratio", 1}, {"ratio", 1}, {"fail_ratio", 1}, {"of_raw_reads", 1}};
  std::string unit, derived;
  JsonReader r(expectation, metric);
  r.get_or("min", min, -kInfinity);
  r.get_or("max", max, kInfinity);
  r.get_or("degraded_below", low, 0.0);
  r.get_or("degraded_above", high, 0.0);
  r.get_or("otherwise_min", least, 0.0);
  r.get_or("derive", derived, {});
  r.get_or("unit", unit, {});
  for (auto& [name, ratio] : ratios) r.get_or(name.c_str(), ratio, 1.0);
  TRY_(r.finish());
  if (min > max) return fail(Code::invalid, fmt::format("min {} is above max {}", min, max));
  for (const auto& [name, ratio] : ratios)
    if (!(ratio > 0 && ratio <= 1))
      return fail(Code::invalid, fmt::format("{} is {}, but must be above 0 and at most 1", name, ratio));
  const auto& names = derivable();
  if (!derived.empty() && std::find(names.begin(), names.end(), derived) == names.end()) {
    const std::string near = nearest_spelling(derived, names);
    return fail(Code::invalid, fmt::format("there is no derived value '{}'{}", derived,
                                           near.empty() ? "" : ", did you mean '" + near + "'?"));
  }
  if (derived == kDriveModels && !is_known_of_drives(metric))
    return fail(
        Code::invalid,
        "only read_mbps, parallel_mbps, write_mbps and random_read_iops can be derived from drive models");
  if (expectation.contains("of_raw_reads") != expectation.contains("otherwise_min"))
    return fail(Code::invalid, "`of_raw_reads` and `otherwise_min` must be given together");
  if (derived.empty() == (expectation.contains("ratio") || expectation.contains("fail_ratio")))
    return fail(Code::invalid, "`derive` requires `ratio` or `fail_ratio`, and vice versa");
  return Ok{};
}

Status check_expectations(const Json& expect) {
  if (expect.is_null()) return Ok{};
  if (!expect.is_object()) return fail(Code::invalid, "expect: expected an object of metrics");
  for (const auto& [metric, expectation] : expect.items())
    if (const Status fine = check_limit(metric, expectation); !fine.ok())
      return fail(Code::invalid, fmt::format("expect.{}: {}", metric, fine.error().message));
  return Ok{};
}

}  // namespace muster
