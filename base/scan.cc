#include "base/scan.h"

namespace muster {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_letter(char c) { return is_lower(c) || (c >= 'A' && c <= 'Z'); }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

bool Scan::skip(std::string_view word) {
  if (!rest_.starts_with(word)) return false;
  rest_.remove_prefix(word.size());
  return true;
}

std::string_view Scan::take(bool (*is)(char), size_t most) {
  size_t count = 0;
  while (count < rest_.size() && count < most && is(rest_[count])) ++count;
  const std::string_view taken = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return taken;
}

bool Scan::skip(size_t count, bool (*is)(char)) {
  const std::string_view before = rest_;
  if (take(is, count).size() == count) return true;
  rest_ = before;
  return false;
}

}  // namespace muster
