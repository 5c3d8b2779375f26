// Text in UTF-8: its characters, and truncation that splits none. Text that is not UTF-8 is handled as well;
// the functions never throw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
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

inline constexpr size_t kLongestReason = 2000;
// Of a text from an agent, which may have any length: it is kept in rows and is in lists of causes. At most
// kLongestReason bytes, with "..." at the end if more was left out.
std::string short_reason(const std::string& reason);
// The end of what a program printed, at most `most` bytes of it, behind "..." if more was left out.
std::string end_of_output(std::string_view text, size_t most);

}  // namespace muster
