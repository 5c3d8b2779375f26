#include "controller/rollout/window.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace muster::rollout {
namespace {

// A window that was opened this much too early was opened at the right time of day.
constexpr DurationMs kTooEarly = 30 * kMinute;

bool same_boot(const Window& window, const Clocks& now) {
  return !now.boot.boot.empty() && window.since.boot == now.boot.boot;
}

// How much too late, by the time of day, it was opened.
DurationMs opened_late(const Window& window) {
  const DurationMs late = (window.clock_set % kDay + kDay) % kDay;
  return late >= kDay - kTooEarly ? 0 : late;
}

}  // namespace

Window window_of_older(TimeMs until, const Clocks& now) {
  if (until <= now.wall || until - now.wall > kLongestWindow) return {};
  return {now.wall, until - now.wall, now.boot};
}

DurationMs age_of(const Window& window, const Clocks& now) {
  return same_boot(window, now) ? now.boot.ms - window.since.ms : now.wall - window.opened;
}

DurationMs span_of(const Window& window) {
  if (window.length >= kDay) return window.length;  // it has each time of day
  return std::max<DurationMs>(window.length - opened_late(window), 0);
}

TimeMs end_of(const Window& window) { return window.opened + span_of(window); }

bool is_open(const Window& window, const Clocks& now) {
  const DurationMs age = age_of(window, now);
  return age >= 0 && age < span_of(window);
}

bool is_same_window(const Window& window, const Clocks& now) {
  return is_open(window, now) && age_of(window, now) < kAnotherWindow;
}

std::optional<Window> corrected(const Window& window, const Clocks& now) {
  if (!same_boot(window, now)) return std::nullopt;
  const DurationMs set = now.wall - window.opened - age_of(window, now);
  if (std::abs(set) < kClockSet) return std::nullopt;
  Window out = window;
  out.opened += set;
  out.clock_set += set;
  return out;
}

void ClockWatch::sample(TimeMs wall, SteadyMs now) {
  const DurationMs ahead = wall - now.ms;
  if (ahead_.empty() || std::abs(ahead - ahead_.rbegin()->second) >= kSecond) ahead_[now] = ahead;
  // What was before the longest window does not count; the newest of that does.
  while (ahead_.size() > 1 && now - std::next(ahead_.begin())->first > kLongestWindow)
    ahead_.erase(ahead_.begin());
}

DurationMs ClockWatch::forward_since(SteadyMs then, TimeMs wall, SteadyMs now) const {
  if (ahead_.empty()) return 0;
  auto before = ahead_.upper_bound(then);
  if (before != ahead_.begin()) --before;
  const DurationMs forward = wall - now.ms - before->second;
  return forward >= kClockSet ? forward : 0;
}

}  // namespace muster::rollout
