#include "controller/causes/normal_reason.h"

#include <algorithm>

#include "base/scan.h"
#include "base/utf8.h"

namespace muster {
namespace {

constexpr const char* kVaries = "*";
constexpr size_t kShortestDigest = 8;
constexpr const char* kEndsSentence = ".:-";
// Bytes. More is read than is returned, so that the end does not depend on how long the names of nodes are.
constexpr size_t kMostRead = 2000, kLongest = 1000;

bool is_of_word(char c) { return is_alphanumeric(c) || c == '.' || c == ':' || c == '-' || c == '_'; }

size_t numbers_in(const std::string& word) {
  size_t count = 0;
  for (size_t i = 0; i < word.size(); ++i) count += is_digit(word[i]) && (i == 0 || !is_digit(word[i - 1]));
  return count;
}

// An address of any kind, a digest, a UUID, a time of day: hexadecimal digits and what separates them.
bool is_address(const std::string& word) {
  const bool hex = std::all_of(word.begin(), word.end(),
                               [](char c) { return is_hex(c) || c == '.' || c == ':' || c == '-'; });
  return hex && (word.find(':') != std::string::npos || word.size() >= kShortestDigest);
}

std::string normal_word(const std::string& word) {
  const size_t numbers = numbers_in(word);
  if (numbers == 0) return word;
  if (numbers > 1 || is_address(word) || word.find_first_not_of("0123456789") == std::string::npos)
    return kVaries;
  std::string out;
  for (size_t i = 0; i < word.size(); ++i)
    if (!is_digit(word[i]))
      out += word[i];
    else if (i == 0 || !is_digit(word[i - 1]))
      out += '#';
  return out;
}

// Between two names of one list.
bool is_comma(const std::string& text) { return text == ", " || text == "," || text == " "; }

}  // namespace

std::string normal_reason(const std::string& whole, const std::function<bool(const std::string&)>& is_node) {
  const std::string reason(first_bytes(whole, kMostRead));
  std::string out, between;
  bool after_node = false;
  for (size_t at = 0; at < reason.size() && out.size() < kLongest;) {
    size_t end = at;
    while (end < reason.size() && !is_of_word(reason[end])) ++end;
    between = reason.substr(at, end - at);
    at = end;
    while (end < reason.size() && is_of_word(reason[end])) ++end;
    std::string word = reason.substr(at, end - at);
    const size_t named = word.find_last_not_of(kEndsSentence) + 1;  // 0: nothing else
    const std::string tail = word.substr(named);
    word.resize(named);
    at = end;
    const bool node = !word.empty() && is_node(word);
    const bool listed = node && after_node && is_comma(between);
    if (!listed) out += between + (node ? kVaries : normal_word(word));
    out += tail;
    after_node = node && tail.empty();
  }
  return std::string(first_bytes(out, kLongest));
}

}  // namespace muster
