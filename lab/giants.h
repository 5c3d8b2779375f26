// Frames that no adapter takes: longer than any jumbo frame. An adapter that counts errors counts them as
// such (rx_length_errors, rx_errors), and drops them. Thread: blocking calls, any thread in the lab's
// namespace.
#pragma once

#include <string>

#include "base/result.h"

namespace muster::lab {

// What emulated adapters take at most is 16 KiB.
inline constexpr int kGiantBytes = 17000;
inline constexpr int64_t kMostGiants = 1000;

// A frame to `mac` of an EtherType that is for experiments, so that nobody who takes it makes anything of it.
// Code::invalid: not six bytes such as 52:54:00:22:00:01.
Result<std::string> giant_frame(const std::string& mac);
// Into the machine behind `tap`, whose MTU has to be kGiantBytes for that long.
Status send_giants(const std::string& tap, const std::string& mac, int64_t count);

}  // namespace muster::lab
