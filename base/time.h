// Time as plain integers: milliseconds since the Unix epoch, and durations in milliseconds. Only a Reactor
// provides the time; the logic never reads a clock of the operating system.
#pragma once

#include <cstdint>
#include <string>

namespace muster {

using TimeMs = int64_t;      // milliseconds since 1970-01-01T00:00:00Z
using DurationMs = int64_t;  // milliseconds

constexpr DurationMs kSecond = 1000;
constexpr DurationMs kMinute = 60 * kSecond;
constexpr DurationMs kDay = 24 * 60 * kMinute;

// "2026-11-20T19:55:29Z"
std::string to_iso8601(TimeMs t);
// "42 s", "3 min 10 s", "2 h 5 min"
std::string to_human(DurationMs d);

}  // namespace muster
