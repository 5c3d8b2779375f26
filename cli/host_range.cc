#include "cli/host_range.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/scan.h"
#include "base/split.h"

namespace muster::cli {
namespace {

struct Bracket {
  size_t open = std::string::npos, close = 0;
  std::string inside;
};

// "01:16", "1:9:2", "a:f". An IPv6 address has "::" or seven colons.
bool is_colon_range(const std::string& inside) {
  const size_t colons = static_cast<size_t>(std::count(inside.begin(), inside.end(), ':'));
  const auto ends = split(inside, ':');
  if (colons == 0 || colons > 2 || ends.size() != colons + 1) return false;
  const auto number = [](const std::string& text) { return std::all_of(text.begin(), text.end(), is_digit); };
  const auto letter = [](const std::string& text) { return text.size() == 1 && is_letter(text[0]); };
  if (ends.size() == 3) return number(ends[0]) && number(ends[1]) && number(ends[2]);
  return (number(ends[0]) && number(ends[1])) || (letter(ends[0]) && letter(ends[1]));
}

// The first pair from `at` on that is no IPv6 address; none: `open` is npos. One that is not closed ends with
// the text.
Bracket next_bracket(const std::string& text, size_t at) {
  for (;;) {
    Bracket out;
    out.open = text.find('[', at);
    if (out.open == std::string::npos) return out;
    out.close = std::min(text.find(']', out.open), text.size());
    out.inside = text.substr(out.open + 1, out.close - out.open - 1);
    const bool address = has(out.inside, ":") && !has(out.inside, ",") && !is_colon_range(out.inside);
    if (!address) return out;
    at = out.close;
  }
}

// "a:f" -> "a", ..., "f".
Status add_letters(const std::string& part, std::vector<RangedName>& out) {
  const char first = part[0], last = part[2];
  if (first > last || is_lower(first) != is_lower(last))
    return fail(Code::invalid, fmt::format("'[{}]' is not a range such as [a:f]", part));
  for (char c = first; c <= last; ++c) out.push_back({std::string(1, c), -1});
  return Ok{};
}

// One part between commas: "07", "01-03", "0-30/2", "01:16", "1:9:2", "a:f".
Status add_part(std::string part, std::vector<RangedName>& out) {
  if (is_colon_range(part)) {
    if (is_letter(part[0])) return add_letters(part, out);
    part[part.find(':')] = '-';
    if (const size_t step = part.find(':'); step != std::string::npos) part[step] = '/';
  }
  const size_t slash = part.find('/');
  const std::string step = slash == std::string::npos ? "1" : part.substr(slash + 1);
  if (step.empty() || step.size() > 4 || !std::all_of(step.begin(), step.end(), is_digit) ||
      std::stoul(step) == 0)
    return fail(Code::invalid, fmt::format("'[{}]': '{}' is not a step such as 2 in [0-30/2]", part, step));
  TRY(const auto all, expand_numbered_range("[" + part.substr(0, slash) + "]"));
  for (size_t i = 0; i < all.size(); i += std::stoul(step)) out.push_back(all[i]);
  return Ok{};
}

Result<std::vector<RangedName>> expand_inside(const std::string& pattern, const Bracket& bracket) {
  if (bracket.close == pattern.size())
    return fail(Code::invalid, fmt::format("'{}': '[' is not closed by ']'", pattern));
  std::vector<RangedName> out;
  for (size_t start = 0; start <= bracket.inside.size();) {
    const size_t comma = std::min(bracket.inside.find(',', start), bracket.inside.size());
    TRY_(add_part(bracket.inside.substr(start, comma - start), out));
    if (out.size() > kMostSpecNodes)
      return fail(Code::invalid, fmt::format("'{}': more than {} names", pattern, kMostSpecNodes));
    start = comma + 1;
  }
  return out;
}

Status append(const std::string& pattern, const std::vector<RangedName>& more, bool first,
              std::vector<RangedName>& names) {
  if (names.size() * more.size() > kMostSpecNodes)
    return fail(Code::invalid,
                fmt::format("'{}': the range has more than {} names", pattern, kMostSpecNodes));
  std::vector<RangedName> out;
  for (const RangedName& before : names)
    for (const RangedName& one : more) out.push_back({before.name + one.name, first ? one.number : -1});
  names = std::move(out);
  return Ok{};
}

}  // namespace

Result<std::vector<RangedName>> expand_host_range(const std::string& pattern) {
  if (pattern.empty()) return fail(Code::invalid, "the name is empty");
  std::vector<RangedName> names = {{"", -1}};
  size_t at = 0;
  for (bool first = true;; first = false) {
    const Bracket bracket = next_bracket(pattern, at);
    const std::string between = pattern.substr(at, bracket.open - std::min(at, bracket.open));
    // Behind a ']' that closes an IPv6 address, a port may stand; any other one has no '['.
    if (between.find(']') != std::string::npos && between.find('[') == std::string::npos)
      return fail(Code::invalid, fmt::format("'{}': ']' without '['", pattern));
    for (RangedName& one : names) one.name += between;
    if (bracket.open == std::string::npos) return names;
    TRY(const auto inside, expand_inside(pattern, bracket));
    TRY_(append(pattern, inside, first, names));
    at = bracket.close + 1;
  }
}

bool has_host_range(const std::string& pattern) { return next_bracket(pattern, 0).open != std::string::npos; }

std::vector<std::string> split_host_list(const std::string& list) {
  std::vector<std::string> out;
  std::string piece;
  int depth = 0;
  for (const char c : list + ",") {
    depth += (c == '[') - (c == ']');
    if (c != ',' || depth > 0) {
      piece += c;
      continue;
    }
    if (!piece.empty()) out.push_back(std::move(piece));
    piece.clear();
  }
  if (piece.size() > 1) out.push_back(piece.substr(0, piece.size() - 1));  // a bracket is not closed
  return out;
}

size_t length_outside_brackets(const std::string& pattern) {
  size_t inside = 0;
  for (Bracket at = next_bracket(pattern, 0); at.open != std::string::npos;
       at = next_bracket(pattern, std::min(at.close + 1, pattern.size())))
    inside += at.inside.size();
  return pattern.size() - inside;
}

}  // namespace muster::cli
