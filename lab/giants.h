// Frames longer than any jumbo frame, which every adapter rejects. An adapter with error counters drops them
// and counts them (rx_length_errors, rx_errors). Thread safety: blocking calls, from any thread in the lab's
// namespace.
#pragma once

#include <string>

#include "base/result.h"

namespace muster::lab {

// Emulated adapters accept at most 16 KiB.
inline constexpr int kGiantBytes = 17000;
inline constexpr int64_t kMostGiants = 1000;

// Returns a frame to `mac` with an experimental EtherType, which every receiver ignores. Code::invalid: `mac`
// is not six bytes such as 52:54:00:22:00:01.
Result<std::string> giant_frame(const std::string& mac);
// Sends `count` such frames to the machine on `tap`, whose MTU must be kGiantBytes meanwhile.
Status send_giants(const std::string& tap, const std::string& mac, int64_t count);

}  // namespace muster::lab
