#include "controller/report/raw_drives.h"

#include <fmt/format.h>

#include "controller/report/measured.h"

namespace muster {

double data_drives(const std::string& level, double n) {
  if (level.empty() || level == "raid0" || level == "linear") return n;
  if (level == "raid1") return 1;
  if (level == "raid5") return n - 1;
  if (level == "raid6") return n - 2;
  if (level == "raid10") return n / 2;
  return 0;
}

RawReads raw_reads(const std::vector<MeasuredStep>& steps) {
  RawReads out;
  for (const auto& step : steps) {
    const bool measured = text_of(field(step.result, "outcome")) == "measured";
    if (!measured || text_of(field(step.result, "check")) != "drives") continue;
    const auto together = metric_value(step.result, "parallel_mbps");
    const auto mbps = together ? together : metric_value(step.result, "read_mbps");
    if (mbps) out[step.node][step.subject] = *mbps;
  }
  return out;
}

Derived array_reads(const MeasuredStep& step, const std::string& metric, const RawReads& raw) {
  const Json& detail = field(step.result, "detail");
  const Json& drives = field(detail, "drives");
  const std::string level = text_of(field(detail, "level"));
  if (!drives.is_array() || drives.empty()) return {std::nullopt, "the measurement does not name its drives"};
  const auto of_node = raw.find(step.node);
  double sum = 0;
  for (const Json& serial : drives) {
    const bool known = of_node != raw.end() && of_node->second.count(text_of(serial));
    if (!known) return {std::nullopt, fmt::format("drive {} was not read in this run", text_of(serial))};
    sum += of_node->second.at(text_of(serial));
  }
  if (metric.starts_with("write") && (level == "raid5" || level == "raid6"))
    return {std::nullopt, fmt::format("the cost of writing to {} depends on the processor", level)};
  const double n = static_cast<double>(drives.size()), used = data_drives(level, n);
  if (used <= 0) return {std::nullopt, fmt::format("nothing is known about arrays of level '{}'", level)};
  const std::string array = level.empty() ? "" : fmt::format(", {}", level);
  return {sum * used / n, fmt::format("{:.0f} drive{} read {:.0f} MB/s{}{}", n, n == 1 ? "" : "s", sum, array,
                                      used < n ? fmt::format(", {:g} of them holding data", used) : "")};
}

}  // namespace muster
