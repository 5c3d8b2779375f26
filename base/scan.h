// Reads short texts of a fixed form from their front, piece by piece: names, addresses, sizes. Characters are
// ASCII's, whatever the locale. Not std::regex: its header costs a source 3 to 5 s of compile time, and it
// recurses once per character. Pure.
#pragma once

#include <cstddef>
#include <string_view>

namespace muster {

bool is_digit(char c);
bool is_lower(char c);
bool is_letter(char c);  // of either case
bool is_hex(char c);     // of either case
inline bool is_alphanumeric(char c) { return is_letter(c) || is_digit(c); }
inline bool is_lower_or_digit(char c) { return is_lower(c) || is_digit(c); }

// The text must outlive it.
class Scan {
 public:
  explicit Scan(std::string_view text) : rest_(text) {}

  // Passes `word`; false, and nothing is passed, if the rest does not begin with it.
  bool skip(std::string_view word);
  // Passes the longest run of characters that `is` accepts, at most `most`, and returns it.
  std::string_view take(bool (*is)(char), size_t most = std::string_view::npos);
  // Passes exactly `count` such characters; false, and nothing is passed, if fewer follow.
  bool skip(size_t count, bool (*is)(char));

  std::string_view rest() const { return rest_; }
  bool ended() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace muster
