#include "controller/locate/rails.h"

#include <map>

namespace muster::locate {
namespace {

// A node of which this share of the rails is bad (and at least two) is the cause itself.
constexpr double kWholeNode = 0.75;

std::vector<RailSuspect> named(const std::vector<std::vector<Conviction>>& by_rail) {
  std::map<int, std::vector<int>> rails_of;
  for (size_t r = 0; r < by_rail.size(); ++r)
    for (const auto& conviction : by_rail[r]) rails_of[conviction.part].push_back(static_cast<int>(r));
  std::vector<RailSuspect> out;
  for (const auto& [node, rails] : rails_of) {
    const double share = static_cast<double>(rails.size()) / static_cast<double>(by_rail.size());
    if (by_rail.size() > 1 && rails.size() > 1 && share >= kWholeNode) {
      out.push_back({node, {}});
      continue;
    }
    for (const int rail : rails) out.push_back({node, rail});
  }
  return out;
}

}  // namespace

RailProgress proceed_rails(const SearchOptions& options, const std::vector<std::vector<Tested>>& tested) {
  RailProgress out;
  std::vector<std::vector<Conviction>> guilty;
  for (const auto& rail : tested) {
    Progress progress = proceed(options, rail);
    out.finished = out.finished && progress.next.empty();
    out.undecided += progress.undecided.size();
    out.next.push_back(std::move(progress.next));
    guilty.push_back(std::move(progress.guilty));
  }
  out.guilty = named(guilty);
  return out;
}

}  // namespace muster::locate
