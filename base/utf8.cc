#include "base/utf8.h"

namespace muster {
namespace {

constexpr size_t kContinuations = 3;       // continuation bytes that one character has at most
constexpr std::string_view kMark = "...";  // of what was left out

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

}  // namespace

Utf8Character read_utf8(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = at(0);
  if (lead < 0x80) return {1, lead, true};
  const size_t length = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (length == 0) return {1, 0, false};
  uint8_t least = 0x80, most = 0xbf;  // of the second byte: no overlong forms, surrogates, or above U+10FFFF
  if (lead == 0xe0) least = 0xa0;
  if (lead == 0xed) most = 0x9f;
  if (lead == 0xf0) least = 0x90;
  if (lead == 0xf4) most = 0x8f;
  uint32_t unicode = lead & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if (i >= text.size() || at(i) < least || at(i) > most) return {i, 0, false};
    unicode = unicode << 6 | (at(i) & 0x3fu);
    least = 0x80, most = 0xbf;
  }
  return {length, unicode, true};
}

std::string_view first_bytes(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most;
  while (end > 0 && most - end < kContinuations && continues(text[end])) --end;
  return text.substr(0, continues(text[end]) ? most : end);
}

std::string_view last_bytes(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  const size_t cut = text.size() - most;
  size_t begin = cut;
  while (begin < text.size() && begin - cut < kContinuations && continues(text[begin])) ++begin;
  return text.substr(begin);
}

std::string short_reason(const std::string& reason) {
  if (reason.size() <= kLongestReason) return reason;
  return std::string(first_bytes(reason, kLongestReason - kMark.size())).append(kMark);
}

std::string end_of_output(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  return std::string(kMark).append(last_bytes(text, most));
}

}  // namespace muster
