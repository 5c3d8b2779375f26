// Which ports of two machines belong together: by place, by name, or by declared number.
#include <algorithm>
#include <set>

#include "kernels/rdma/rdma.h"

namespace muster::kernels {
namespace {

std::map<std::string, std::string> by_place(const std::vector<RailEnd>& ends) {
  std::map<std::string, std::string> out;
  for (const auto& end : ends)
    if (!end.place.empty()) out[end.place] = end.label;
  return out;
}

}  // namespace

std::vector<Rail> pair_places(const std::vector<RailEnd>& here, const std::vector<RailEnd>& there) {
  const auto own = by_place(here), other = by_place(there);
  if (own.size() != here.size() || other.size() != there.size()) return {};
  std::set<std::string> all;
  size_t shared = 0;
  for (const auto& [place, label] : own) all.insert(place), shared += other.count(place);
  for (const auto& [place, label] : other) all.insert(place);
  const bool lacks_some = shared > 0 && shared == std::min(own.size(), other.size());
  if (!lacks_some && 2 * shared <= std::max(own.size(), other.size())) return {};
  std::vector<Rail> out;
  for (const auto& place : all) {
    const auto a = own.find(place), b = other.find(place);
    out.push_back({out.size(), a == own.end() ? "" : a->second, b == other.end() ? "" : b->second, place});
  }
  return out;
}

std::vector<Rail> pair_rails(const std::vector<std::string>& here, const std::vector<std::string>& there) {
  const auto has = [](const std::vector<std::string>& side, const std::string& label) {
    return std::find(side.begin(), side.end(), label) != side.end();
  };
  const bool share =
      std::any_of(here.begin(), here.end(), [&](const auto& label) { return has(there, label); });
  std::vector<Rail> out;
  if (!share && here.size() == there.size()) {
    for (size_t i = 0; i < here.size(); ++i) out.push_back({i, here[i], there[i]});
    return out;
  }
  std::vector<std::string> either = here;
  for (const auto& label : there)
    if (!has(here, label)) either.push_back(label);
  std::sort(either.begin(), either.end(), rdma_label_before);
  for (size_t i = 0; i < either.size(); ++i)
    out.push_back({i, has(here, either[i]) ? either[i] : "", has(there, either[i]) ? either[i] : ""});
  return out;
}

std::vector<Rail> pair_declared(const std::map<int, std::string>& here,
                                const std::map<int, std::string>& there) {
  std::map<size_t, Rail> all;
  for (const auto& [number, label] : here) all[static_cast<size_t>(number)].here = label;
  for (const auto& [number, label] : there) all[static_cast<size_t>(number)].there = label;
  std::vector<Rail> out;
  for (auto& [number, rail] : all) {
    rail.number = number;
    out.push_back(std::move(rail));
  }
  return out;
}

}  // namespace muster::kernels
