#include "kernels/together/loads.h"

#include <charconv>
#include <fmt/format.h>
#include <utility>

namespace muster::together {
namespace {

std::string who(int rank, const std::string& name) { return fmt::format("rank {} on {}", rank, name); }

}  // namespace

kernels::Measurement lost_measurement(const char* check, const std::vector<Lost>& lost, const Error& error) {
  kernels::Measurement out;
  out.check = check;
  const bool began = error.code != Code::unavailable && error.code != Code::denied;
  out.outcome = began ? kernels::Outcome::failed : kernels::Outcome::unavailable;
  out.error = error.message;
  out.detail["lost"] = Json::array();
  for (const auto& one : lost) {
    out.blame.push_back(who(one.rank, one.name));
    out.detail["lost"].push_back({{"rank", one.rank}, {"name", one.name}, {"how", to_string(one.kind)}});
  }
  return out;
}

std::vector<std::string> names(const Group& group) {
  std::vector<std::string> out;
  for (int r = 0; r < group.size(); ++r) out.push_back(group.name(r));
  return out;
}

Result<kernels::Measurement> envelope(Group& group, const char* check, uint64_t wrong, const char* words) {
  TRY(const auto all, group.gather(std::to_string(wrong), 0));
  kernels::Measurement out;
  out.check = check;
  out.detail["rank"] = group.rank();
  if (group.rank() != 0) {
    out.detail["took_part"] = true;
    return out;
  }
  for (size_t r = 0; r < all.size(); ++r) {
    uint64_t count = 0;
    std::from_chars(all[r].data(), all[r].data() + all[r].size(), count);
    if (count == 0) continue;
    const int rank = static_cast<int>(r);
    out.blame.push_back(who(rank, group.name(rank)));
    if (!out.error.empty()) continue;
    out.outcome = kernels::Outcome::corrupt;
    out.error = out.blame.back() + " " + fmt::format(fmt::runtime(words), count);
  }
  out.metrics["ranks"] = {static_cast<double>(group.size()), "ranks"};
  out.detail["hosts"] = names(group);
  return out;
}

}  // namespace muster::together
