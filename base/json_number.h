// The text of a number that is not an integer: the shortest digits that read back as the same value, nearly
// always ("1.0", "1e-07"). Digests of plans and images are made of it. Implemented in base/json.cc.
#pragma once

#include <cstddef>
#include <span>

namespace muster {

constexpr size_t kLongestNumber = 64;

// Returns how many characters it wrote. The value must be finite.
size_t write_number(double value, std::span<char, kLongestNumber> out);

}  // namespace muster
