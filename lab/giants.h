// Frames that no adapter accepts: longer than any jumbo frame. An adapter that counts errors counts them as
// such (rx_length_errors, rx_errors), and drops them. Thread: blocking calls, any thread in the lab's
// namespace.
#pragma once

#include <string>

#include "base/result.h"

namespace muster::lab {

// Emulated adapters accept at most 16 KiB.
inline constexpr int kGiantBytes = 17000;
inline constexpr int64_t kMostGiants = 1000;

// A frame to `mac` with an experimental EtherType, which any receiver ignores. Code::invalid: not six bytes
// such as 52:54:00:22:00:01.
Result<std::string> giant_frame(const std::string& mac);
// Into the machine behind `tap`, whose MTU must be kGiantBytes meanwhile.
Status send_giants(const std::string& tap, const std::string& mac, int64_t count);

}  // namespace muster::lab
