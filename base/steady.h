// SteadyMs: a time on a monotonic clock, for everything that is measured: deadlines, silence, delays.
//
// The wall clock (TimeMs) is for recorded and shown times: NTP or an operator may set it by hours while a
// deadline runs. The two are different types, so that neither is compared with the other. A SteadyMs is valid
// only in the process that read it. Never stored, never sent.
#pragma once

#include <compare>
#include <cstdint>

#include "base/time.h"

namespace muster {

struct SteadyMs {
  int64_t ms = 0;  // 0: never, i.e. longer ago than any measured span (Reactor::steady() is far above 0)

  auto operator<=>(const SteadyMs&) const = default;
  explicit operator bool() const { return ms != 0; }
  SteadyMs& operator+=(DurationMs span) { return ms += span, *this; }
};

constexpr SteadyMs operator+(SteadyMs at, DurationMs span) { return {at.ms + span}; }
constexpr SteadyMs operator-(SteadyMs at, DurationMs span) { return {at.ms - span}; }
constexpr DurationMs operator-(SteadyMs later, SteadyMs earlier) { return later.ms - earlier.ms; }

}  // namespace muster
