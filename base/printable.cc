#include "base/printable.h"

#include "base/utf8.h"

namespace muster {
namespace {

// U+009B is the escape sequence "ESC [" as one character.
bool is_control(uint32_t unicode) { return unicode < 0x20 || (unicode >= 0x7f && unicode < 0xa0); }

// What follows is shown in another order than it was written.
bool sets_direction(uint32_t unicode) {
  return (unicode >= 0x202a && unicode <= 0x202e) || (unicode >= 0x2066 && unicode <= 0x2069);
}

}  // namespace

std::string printable(std::string_view text, char instead) {
  std::string out;
  while (!text.empty()) {
    const Utf8Character next = read_utf8(text);
    if (!next.valid || is_control(next.unicode) || sets_direction(next.unicode))
      out += instead;
    else
      out += text.substr(0, next.bytes);
    text.remove_prefix(next.bytes);
  }
  return out;
}

}  // namespace muster
