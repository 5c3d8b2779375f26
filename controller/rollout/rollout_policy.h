// What an operator allows a rollout: the part of `rollout:` in the spec that the choice of the next batch
// needs. `drain_timeout`, `acceptance` and `trial` belong to the runs. Thread: values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace muster::rollout {

// How many nodes of the roles may be unavailable at once, for whatever reason. A percentage is of all nodes
// of the roles, rounded down, and at least one node.
struct MaxUnavailable {
  int count = 1;
  int percent = 0;  // more than 0: this counts, and `count` does not
};
inline int most_unavailable(const MaxUnavailable& allowed, int nodes) {
  if (allowed.percent <= 0) return allowed.count;
  return std::max(1, static_cast<int>(static_cast<int64_t>(nodes) * std::min(allowed.percent, 100) / 100));
}

struct Policy {
  std::vector<std::string> roles;  // nodes of other roles are not touched
  MaxUnavailable max_unavailable;
  int canary = 1;          // nodes that prove an image before the others get it; less than 1 counts as 1
  int failure_budget = 0;  // failed nodes that the whole rollout tolerates; negative: any number
};

}  // namespace muster::rollout
