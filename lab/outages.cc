#include "lab/outages.h"

#include <algorithm>

namespace muster::lab {

bool Outages::down(const std::string& tap) const {
  return std::any_of(outages_.begin(), outages_.end(), [&](auto& o) { return o.second.taps.count(tap) > 0; });
}

Outages::Taps Outages::begin(const std::string& reason, const Taps& taps, SteadyMs until) {
  Taps changed;
  for (const auto& tap : taps)
    if (!down(tap)) changed.push_back(tap);
  outages_[reason].taps.insert(taps.begin(), taps.end());
  outages_[reason].until = until;
  return changed;
}

bool Outages::join(const std::string& reason, const std::string& tap) {
  const auto found = outages_.find(reason);
  if (found == outages_.end()) return false;
  found->second.taps.insert(tap);
  return true;
}

Outages::Taps Outages::end(const std::string& reason) {
  const auto found = outages_.find(reason);
  if (found == outages_.end()) return {};
  const auto taps = std::move(found->second.taps);
  outages_.erase(found);
  Taps changed;
  for (const auto& tap : taps)
    if (!down(tap)) changed.push_back(tap);
  return changed;
}

std::vector<std::string> Outages::due(SteadyMs now) const {
  std::vector<std::string> out;
  for (const auto& [reason, outage] : outages_)
    if (outage.until <= now) out.push_back(reason);
  return out;
}

std::optional<SteadyMs> Outages::until(const std::string& reason) const {
  const auto found = outages_.find(reason);
  if (found == outages_.end()) return std::nullopt;
  return found->second.until;
}

}  // namespace muster::lab
