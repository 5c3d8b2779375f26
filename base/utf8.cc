#include "base/utf8.h"

namespace muster {
namespace {

constexpr size_t kContinuations = 3;  // continuation bytes that one character has at most

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

}  // namespace

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

}  // namespace muster
