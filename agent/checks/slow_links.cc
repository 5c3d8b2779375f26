#include "agent/checks/slow_links.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace muster::checks {
namespace {

constexpr const char* kRates[] = {"send_mbps", "receive_mbps"};
constexpr double kSlow = 0.8;
constexpr size_t kFewest = 3, kMost = 4;

// NaN: not measured.
double rate_of(const Json& result, const char* name) {
  if (result.value("outcome", "") != "measured") return std::nan("");
  const Json value = result.value(Json::json_pointer(std::string("/metrics/") + name + "/value"), Json());
  return value.is_number() ? value.get<double>() : std::nan("");
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

std::vector<size_t> slow_links(const Json& parts) {
  std::vector<double> share(parts.size(), 1);  // rate of the slower direction, relative to the median
  for (const char* name : kRates) {
    std::vector<double> all;
    for (const Json& part : parts)
      if (const double rate = rate_of(part.at("result"), name); !std::isnan(rate)) all.push_back(rate);
    if (all.size() < kFewest) return {};
    const double middle = median(all);
    for (size_t i = 0; i < parts.size(); ++i)
      if (const double rate = rate_of(parts[i].at("result"), name); middle > 0 && !std::isnan(rate))
        share[i] = std::min(share[i], rate / middle);
  }
  std::vector<size_t> out;
  for (size_t i = 0; i < share.size(); ++i)
    if (share[i] < kSlow) out.push_back(i);
  std::stable_sort(out.begin(), out.end(), [&](size_t a, size_t b) { return share[a] < share[b]; });
  if (out.size() > kMost) out.resize(kMost);
  return out;
}

double turn_seconds(int round, double seconds) {
  return std::max(round, 1) * 2 * std::clamp(seconds, 0.0, 60.0);
}

Json better_link(const Json& before, const Json& again) {
  if (before.value("outcome", "") == "corrupt") return before;
  const std::string outcome = again.value("outcome", "");
  if (outcome != "measured" && outcome != "corrupt") return before;
  Json out = again;
  for (const char* name : kRates) {
    const double first = rate_of(before, name), second = rate_of(again, name);
    if (std::isnan(first)) continue;
    const Json::json_pointer kept(std::string("/detail/first_try/") + name);
    out["detail"]["first_try"][name] = before.contains(kept) ? before.at(kept) : Json(first);
    if (first > second) out["metrics"][name] = before["metrics"][name];
  }
  return out;
}

}  // namespace muster::checks
