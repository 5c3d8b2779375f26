#include "controller/run/tally.h"

namespace muster {

using Stage = NodeRun::Stage;

Standing standing_of(const NodeRun& node) {
  Standing now;
  now.over = node.over();
  now.works = node.stage == Stage::done;
  now.returning = node.returning;
  now.by_hand = node.control.by == Switch::person && node.stage == Stage::powering;
  now.failed = node.stage == Stage::quarantined || node.returning;
  now.pending = node.stage == Stage::pending;
  now.heeded = node.attempt.offered || node.attempt.weighing;
  return now;
}

void Tally::move(const Standing& before, const Standing& now) {
  const auto good_one = [](const Standing& s) { return s.works && !s.returning; };
  failed += int{now.failed} - int{before.failed};
  over += size_t{now.over} - size_t{before.over};
  works += size_t{now.works} - size_t{before.works};
  good += size_t{good_one(now)} - size_t{good_one(before)};
}

}  // namespace muster
