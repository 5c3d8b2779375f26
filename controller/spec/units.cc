#include "controller/spec/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

namespace muster {

namespace {

bool all_digits(const std::string& text) {
  return !text.empty() && text.size() <= 6 && text.find_first_not_of("0123456789") == std::string::npos;
}

// One part of a bracket expression: "07" or "01-03".
Status add_part(const std::string& pattern, const std::string& prefix, const std::string& part,
                const std::string& suffix, std::vector<RangedName>& out) {
  const size_t dash = part.find('-');
  const std::string from = part.substr(0, dash);
  const std::string to = dash == std::string::npos ? from : part.substr(dash + 1);
  if (!all_digits(from) || !all_digits(to))
    return fail(Code::invalid, fmt::format("'{}' is not a range such as gpu[01-08]", pattern));
  if (from.size() > to.size() || (from.size() < to.size() && from[0] == '0'))
    return fail(Code::invalid,
                fmt::format("'{}': both ends of the range need the same number of digits", pattern));
  const int first = std::atoi(from.c_str()), last = std::atoi(to.c_str());
  if (first > last) return fail(Code::invalid, fmt::format("'{}': the range is reversed", pattern));
  if (out.size() + static_cast<size_t>(last - first) >= kMostSpecNodes)
    return fail(Code::invalid,
                fmt::format("'{}': the range has more than {} names", pattern, kMostSpecNodes));
  for (int n = first; n <= last; ++n)
    out.push_back({fmt::format("{}{:0{}}{}", prefix, n, from.size(), suffix), n});
  return Ok{};
}

struct Quantity {
  double value = 0;
  std::string unit;
};

Result<Quantity> parse_quantity(const std::string& text) {
  const size_t digits = text.find_first_not_of("0123456789.");
  const std::string number = text.substr(0, digits);
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  if (number.empty() || *end != 0 || number.size() > 18 || number == ".")
    return fail(Code::invalid, fmt::format("'{}' does not begin with a number", text));
  std::string unit = digits == std::string::npos ? "" : text.substr(digits);
  unit.erase(0, std::min(unit.size(), unit.find_first_not_of(' ')));
  return Quantity{value, unit};
}

// "T" and "tb" for "TB", "Gi" for "GiB".
bool is_nearly(const std::string& given, const std::string& unit) {
  const auto alike = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
  const bool whole = given.size() == unit.size(), short_of_b = given.size() + 1 == unit.size();
  return unit.size() > 1 && (whole || short_of_b) &&
         std::equal(given.begin(), given.end(), unit.begin(), alike);
}

}  // namespace

Result<std::vector<RangedName>> expand_numbered_range(const std::string& pattern) {
  const size_t open = pattern.find('['), close = pattern.find(']');
  if (open == std::string::npos && close == std::string::npos) {
    if (pattern.empty()) return fail(Code::invalid, "the name is empty");
    return std::vector<RangedName>{{pattern, -1}};
  }
  if (open == std::string::npos || close == std::string::npos || close < open + 2 ||
      pattern.find_first_of("[]", close + 1) != std::string::npos ||
      pattern.find('[', open + 1) != std::string::npos)
    return fail(Code::invalid, fmt::format("'{}' is not a range such as gpu[01-08]", pattern));
  const std::string prefix = pattern.substr(0, open), suffix = pattern.substr(close + 1);
  const std::string inside = pattern.substr(open + 1, close - open - 1);
  std::vector<RangedName> out;
  for (size_t start = 0; start <= inside.size();) {
    const size_t comma = std::min(inside.find(',', start), inside.size());
    TRY_(add_part(pattern, prefix, inside.substr(start, comma - start), suffix, out));
    start = comma + 1;
  }
  return out;
}

Result<std::vector<std::string>> expand_range(const std::string& pattern) {
  TRY(const auto numbered, expand_numbered_range(pattern));
  std::vector<std::string> out;
  for (const RangedName& one : numbered) out.push_back(one.name);
  return out;
}

Result<std::string> expand_number(const std::string& text, int number, NumberForm form) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '{') {
      out += text[at++];
      continue;
    }
    const size_t close = text.find('}', at);
    const std::string inside = close == std::string::npos ? "" : text.substr(at + 1, close - at - 1);
    const bool plain = inside == "n";
    const bool shifted = inside.size() > 2 && inside[0] == 'n' && (inside[1] == '+' || inside[1] == '-') &&
                         all_digits(inside.substr(2));
    if (!plain && !shifted)
      return fail(Code::invalid,
                  fmt::format("'{}': only {{n}}, {{n+10}} and {{n-1}} are allowed in braces", text));
    if (number < 0)
      return fail(Code::invalid, fmt::format("'{}': {{n}} needs a node name with a range", text));
    const int value = number + (shifted ? std::atoi(inside.c_str() + 1) : 0);
    if (value < 0 || (form == NumberForm::hex2 && value > 255))
      return fail(Code::invalid, fmt::format("'{}': {} is outside 0 to 255", text, value));
    out += form == NumberForm::hex2 ? fmt::format("{:02x}", value) : fmt::format("{}", value);
    at = close + 1;
  }
  return out;
}

Result<std::string> listed_value(const std::string& text) {
  if (text.find_first_of("{}") == std::string::npos) return text;
  return fail(
      Code::invalid,
      fmt::format("'{}': braces are not allowed in a list, which gives each node its own value", text));
}

Result<int64_t> parse_size(const std::string& text) {
  struct Unit {
    const char* name;
    double factor;
  };
  static constexpr Unit units[] = {{"", 1},         {"B", 1},        {"kB", 1e3},     {"KB", 1e3},
                                   {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},    {"PB", 1e15},
                                   {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
                                   {"PiB", 0x1p50}};
  TRY(const Quantity quantity, parse_quantity(text));
  for (const Unit& unit : units) {
    if (quantity.unit != unit.name) continue;
    const double bytes = std::round(quantity.value * unit.factor);
    if (bytes > 9e18) return fail(Code::invalid, fmt::format("'{}' is too large", text));
    return static_cast<int64_t>(bytes);
  }
  for (const Unit& unit : units)
    if (is_nearly(quantity.unit, unit.name))
      return fail(Code::invalid,
                  fmt::format("'{}': unknown unit '{}', did you mean '{}'?", text, quantity.unit, unit.name));
  return fail(Code::invalid,
              fmt::format("'{}': unknown unit '{}'; use MB, GB, TB or MiB, GiB, TiB", text, quantity.unit));
}

Result<int64_t> parse_rate(const std::string& text) {
  if (text == "0") return int64_t{0};
  constexpr std::string_view kPerSecond = "/s";
  const bool ends = text.size() > kPerSecond.size() &&
                    text.compare(text.size() - kPerSecond.size(), kPerSecond.size(), kPerSecond) == 0;
  if (!ends) return fail(Code::invalid, fmt::format("'{}' is not a rate such as 200 MB/s", text));
  return parse_size(text.substr(0, text.size() - kPerSecond.size()));
}

Result<double> parse_link_rate(const std::string& text) {
  TRY(const Quantity quantity, parse_quantity(text));
  const double factor = quantity.unit == "Gb/s" ? 1 : quantity.unit == "Mb/s" ? 1e-3 : 0;
  if (factor == 0 || quantity.value <= 0)
    return fail(Code::invalid, fmt::format("'{}' is not a port's rate such as 200 Gb/s or 100 Mb/s", text));
  return quantity.value * factor;
}

Result<DurationMs> parse_duration(const std::string& text) {
  TRY(const Quantity quantity, parse_quantity(text));
  const std::string_view unit = quantity.unit;
  const double factor = unit == "ms"                   ? 1
                        : unit.empty() || unit == "s"  ? 1000
                        : unit == "min" || unit == "m" ? 60000
                        : unit == "h"                  ? 3600000
                        : unit == "d"                  ? 86400000
                                                       : 0;
  if (factor == 0 || quantity.value > 1e6)
    return fail(Code::invalid, fmt::format("'{}' is not a duration such as 500 ms, 2 s or 3 min", text));
  return static_cast<DurationMs>(quantity.value * factor);
}

}  // namespace muster
