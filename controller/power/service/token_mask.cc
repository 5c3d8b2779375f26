#include "controller/power/service/token_mask.h"

namespace muster {
namespace {

constexpr std::string_view kBefore = "muster.token=";  // its first letter does not occur again
constexpr size_t kToken = 48;                          // as the boot service makes them: 24 bytes in hex

}  // namespace

// True for terminal control sequences such as "ESC [ 31 m" (cursor movement, colours) and line ends.
bool TokenMask::is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (escape_ == Escape::begun) {
    escape_ = c == '[' ? Escape::sequence : Escape::none;
    return true;
  }
  if (escape_ == Escape::sequence) {
    if (byte >= 0x40 && byte < 0x7f) escape_ = Escape::none;
    return true;
  }
  if (byte == 0x1b) escape_ = Escape::begun;
  return byte < 0x20 || byte == 0x7f;
}

std::string TokenMask::pass(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (const char c : bytes) {
    if (is_control(c)) {
      // A line end inside a token comes from line wrapping.
      if (hiding_ && hidden_ >= kToken) hiding_ = false;
      out += c;
      continue;
    }
    if (hiding_ && c != ' ' && c != '\'' && c != '"') {
      ++hidden_;
      continue;
    }
    hiding_ = false;
    out += c;
    matched_ = c == kBefore[matched_] ? matched_ + 1 : c == kBefore[0] ? 1 : 0;
    if (matched_ < kBefore.size()) continue;
    out += "***";
    matched_ = hidden_ = 0;
    hiding_ = true;
  }
  return out;
}

}  // namespace muster
