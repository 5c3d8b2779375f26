// The policy of a rollout: the part of `rollout:` in the spec that the choice of the next batch needs. The
// runs use `drain_timeout`, `acceptance` and `trial`. Thread safety: plain value types.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace muster::rollout {

// How many nodes of the roles may be unavailable at once, for any reason. A percentage refers to all nodes of
// the roles; it is rounded down, but to no less than one node.
struct MaxUnavailable {
  int count = 1;
  int percent = 0;  // if above 0, used in place of `count`
};
inline int most_unavailable(const MaxUnavailable& allowed, int nodes) {
  if (allowed.percent <= 0) return allowed.count;
  return std::max(1, static_cast<int>(static_cast<int64_t>(nodes) * std::min(allowed.percent, 100) / 100));
}

struct Policy {
  std::vector<std::string> roles;  // nodes of other roles are not touched
  MaxUnavailable max_unavailable;
  int canary = 1;          // nodes that must be accepted with an image before others get it; at least 1
  int failure_budget = 0;  // failed nodes allowed in the whole rollout; negative: no limit
};

}  // namespace muster::rollout
