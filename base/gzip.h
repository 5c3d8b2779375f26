// gzip compression and decompression in memory. Thread safety: stateless functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster {

// failed: out of memory.
Result<std::string> gzip(std::string_view content);
// corrupt: not gzip, truncated, followed by other data, or more than `most` bytes when unpacked.
Result<std::string> gunzip(std::string_view packed, size_t most);

}  // namespace muster
