// gzip, packed and unpacked in memory. Thread: plain functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster {

// failed: no memory for it.
Result<std::string> gzip(std::string_view content);
// corrupt: not gzip, cut off, data after its end, or more than `most` bytes when unpacked.
Result<std::string> gunzip(std::string_view packed, size_t most);

}  // namespace muster
