// Text in UTF-8: its characters, and truncation that splits none. Text that is not UTF-8 is handled as well;
// the functions never throw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace muster {

struct Utf8Character {
  size_t bytes;      // of the character, or of what must be replaced
  uint32_t unicode;  // meaningless unless valid
  bool valid;
};
// Reads the character at the start of `text`, which is not empty. Of an invalid sequence the longest start of
// a valid one is replaced (Unicode 15, table 3-7 and section 3.9).
Utf8Character read_utf8(std::string_view text);

std::string_view first_bytes(std::string_view text, size_t most);
std::string_view last_bytes(std::string_view text, size_t most);

}  // namespace muster
