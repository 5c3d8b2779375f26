// Truncates text without splitting a UTF-8 character. Text that is not UTF-8 is truncated as well; the
// functions never throw.
#pragma once

#include <string_view>

namespace muster {

std::string_view first_bytes(std::string_view text, size_t most);
std::string_view last_bytes(std::string_view text, size_t most);

}  // namespace muster
