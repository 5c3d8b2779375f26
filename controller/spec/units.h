// Short text formats of a spec: node ranges with numbers, number templates, sizes, durations. No I/O.
#pragma once

#include "controller/spec/spec.h"

namespace muster {

// Of a spec, and so of one range and of a list of hosts.
inline constexpr size_t kMostSpecNodes = 4096;

struct RangedName {
  std::string name;
  int number = -1;  // the number in the brackets; -1 for a name without a range
};
Result<std::vector<RangedName>> expand_numbered_range(const std::string& pattern);

enum class NumberForm { decimal, hex2 };
// Replaces {n}, {n+10}, {n-1}. Code::invalid for other braces, and for {n} where there is no number.
Result<std::string> expand_number(const std::string& text, int number, NumberForm form);

// One name's value from a list with one per name. Code::invalid for braces: that is not a template.
Result<std::string> listed_value(const std::string& text);

// "200 MB/s", "64 MiB/s" -> bytes per second; "0" is 0.
Result<int64_t> parse_rate(const std::string& text);

// "200 Gb/s", "2.5 Gb/s" or "100 Mb/s" -> Gb/s; above 0.
Result<double> parse_link_rate(const std::string& text);

// "500 ms", "2 s", "3 min" or "3m", "1 h", "90 d"; a bare number is seconds.
Result<DurationMs> parse_duration(const std::string& text);

}  // namespace muster
