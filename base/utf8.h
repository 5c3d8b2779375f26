// Cutting text without cutting a character of UTF-8 in two. Text that is not UTF-8 is cut as well; nothing
// throws.
#pragma once

#include <string_view>

namespace muster {

// At most `most` bytes of the beginning, or of the end.
std::string_view first_bytes(std::string_view text, size_t most);
std::string_view last_bytes(std::string_view text, size_t most);

}  // namespace muster
