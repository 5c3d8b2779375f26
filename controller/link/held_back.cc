#include "controller/link/held_back.h"

#include <algorithm>
#include <utility>

namespace muster {

HeldBack::~HeldBack() {
  for (const auto& [node, timer] : until_) reactor_.cancel(timer);
}

void HeldBack::note_wasted(const std::string& node, size_t bytes) {
  const auto worth = static_cast<DurationMs>(bytes * kSecond / kWastedPerSecond);
  const DurationMs pause = std::min(kLongest, worth);
  if (pause <= 0 || holds(node, kSmall + 1)) return;  // what was under way when the pause began adds nothing
  const Reactor::TimerId timer = reactor_.after(pause, [this, node] { release(node); });
  const std::lock_guard lock(mutex_);
  until_[node] = timer;
}

void HeldBack::release(const std::string& node) {
  Reactor::TimerId timer = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = until_.find(node);
    if (found == until_.end()) return;
    timer = found->second;
    until_.erase(found);
  }
  reactor_.cancel(timer);
}

bool HeldBack::holds(const std::string& node, size_t length) const {
  if (length <= kSmall) return false;
  const std::lock_guard lock(mutex_);
  return until_.count(node) > 0;
}

}  // namespace muster
