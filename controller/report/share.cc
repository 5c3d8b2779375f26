#include "controller/report/share.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "controller/report/measured.h"

namespace muster {
namespace {

bool is_of_all_cores(const Json& expectation) {
  const std::string name = text_of(field(expectation, "derive"));
  return name == "cpu_peak" || name == "dimm_bandwidth";
}

// True if the share is a quota of CPU time: it names no cores, so no peak of these cores can be derived.
bool by_quota(const MeasuredStep& step) { return step.share && step.share->cores_by == "cpu.max"; }

}  // namespace

void mark_shares(std::vector<MeasuredStep>& steps, const std::map<std::string, const HardwareFacts*>& facts) {
  for (auto& step : steps) {
    const auto found = facts.find(step.node);
    if (found == facts.end() || !found->second || found->second->share.words.empty()) continue;
    if (!is_link(step) && !is_collective(step)) step.share = &found->second->share;
  }
}

std::string likeness(const MeasuredStep& step) {
  const std::string share = step.share ? fmt::format("{}", fmt::join(step.share->words, ", ")) : "";
  return step.like.empty() || share.empty() ? step.like + share : step.like + ", " + share;
}

bool is_for_whole_nodes(const Json& expectation, const MeasuredStep& step) {
  if (!step.share) return false;
  if (is_of_all_cores(expectation)) return true;
  return by_quota(step) && std::any_of(step.expect.begin(), step.expect.end(), is_of_all_cores);
}

bool is_underivable(const std::string& name, const MeasuredStep& step) {
  return step.share && (name == "dimm_bandwidth" || (name == "cpu_peak" && by_quota(step)));
}

}  // namespace muster
